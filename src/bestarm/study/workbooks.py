"""Batches as workbooks: ids stay texts, numbers are numbers, and what is to be filled in has a colour."""

import io
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from bestarm.errors import InputError
from bestarm.study.table import TEXTS, is_plain

FILL = "FFF2CC"
WIDEST = 40  # characters


def openpyxl() -> Any:
    """Return the library that writes workbooks, or say what to do without it."""
    try:
        import openpyxl
    except ImportError as error:
        way = "pip install 'bestarm-bai[excel]', or name a file .csv, which any spreadsheet opens"
        raise InputError(f"a workbook, .xlsx, needs openpyxl: {way}") from error
    return openpyxl


def workbook_bytes(columns: Mapping[str, Sequence[str]], blank: Collection[str]) -> bytes:
    """Return a workbook of one sheet with these columns, those to be filled in coloured."""
    library: Any = openpyxl()
    from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE
    from openpyxl.styles import Font, PatternFill

    book = library.Workbook()
    sheet = book.active
    sheet.title, sheet.freeze_panes = "trials", "A2"
    colour = PatternFill("solid", fgColor=FILL)
    for at, (name, cells) in enumerate(columns.items(), 1):
        number = name not in TEXTS and all(cell == "" or is_plain(cell) for cell in cells)
        for row, text in enumerate((name, *cells), 1):
            cell = sheet.cell(row, at)
            if text and number and row > 1:
                cell.value = float(text) if set(text.lower()) & set(".e") else int(text)
            elif text:
                cell.value, cell.data_type = ILLEGAL_CHARACTERS_RE.sub("?", text), "s"  # never a formula
                cell.number_format = "@"
            if name in blank:
                cell.fill = colour
            cell.font = Font(bold=row == 1)
        width = max(map(len, (name, *cells))) + 2
        sheet.column_dimensions[sheet.cell(1, at).column_letter].width = min(max(width, 8), WIDEST)
    data = io.BytesIO()
    book.save(data)
    return data.getvalue()
