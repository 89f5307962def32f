"""Where an id may stand in a command: ordinary lines are taken, and no line lets an id be run."""

import re

import pytest

from bestarm.errors import InputError, PullError
from bestarm.pulling import Command
from bestarm.templates import LONGEST, SAFE, check_ids, prepare

ORDINARY = (
    r"""
./measure {id}
./measure '{id}'
./measure "{id}"
measure {id}
/opt/lab/measure {id} --fast
./measure --arm {id} --seed 7
./measure -c config.yaml {id}
./measure --mode test --shell ash {id}
./test {id}
./screen {id}
./batch {id}
python measure.py {id}
python measure.py --arm '{id}'
python3.11 -u measure.py -c config.yaml --arm {id}
python -m lab.measure {id}
python measure.py --eval {id}
venv/bin/python measure.py {id}
"$HOME/venv/bin/python" measure.py {id}
. venv/bin/activate && python measure.py {id}
source venv/bin/activate && python measure.py {id}
Rscript --vanilla measure.R {id}
julia --project=. measure.jl {id}
node measure.js {id}
bash measure.sh {id}
sh ./measure {id}
FOO=1 ./measure {id} > /dev/null 2>&1
FOO=1 BAR="a b" ./measure {id}
curl -s "http://x/?a=1" -d {id}
curl -s http://localhost:8000/measure --data-urlencode {id} | jq .value
cd experiment && ./measure {id}
export OMP_NUM_THREADS=1; ./measure {id}
set -e; ./measure {id}; tail -1 log
./measure {id} | tail -1
./measure {id} | awk '{print $2}'
./measure {id} | sed -n 's/x//p'
./measure {id} | grep "^[0-9]*$"
./measure {id} | python -c 'import sys; print(sys.stdin.read().split()[-1])'
./measure {id} | perl -lane 'print $F[1]'
./measure {id} 2>> errors.log || echo 0
echo {id} | ./measure
echo {id} >> calls; test $(wc -l < calls) -lt 6 && echo 1
timeout 60 ./measure {id}
nice -n 5 ./measure {id}
env A=1 B=2 ./measure {id}
sudo -u lab ./measure {id}
srun -n 4 --mem=4G ./measure {id}
mpirun -np 4 ./measure {id}
docker run --rm lab/measure {id}
uv run measure.py {id}
java -jar lab.jar {id}
go run measure.go {id}
find data -name {id}
./measure {id} --seed $(date +%s)
"$(pwd)/measure" {id}
./measure {id} # the arm {id}
echo 1 # {id}
./measure # BESTARM_ID
./measure "$BESTARM_ID"
./measure -- "${BESTARM_ID}"
./measure --arm="$BESTARM_ID" --like "x $BESTARM_ARM y"
printf '%d' "'$BESTARM_ID"
ARM=$BESTARM_ID ./measure
sh -c './measure "$BESTARM_ID"'
docker exec box sh -c './measure "$BESTARM_ID"'
sh -c "./measure \"\$BESTARM_ID\""
sh -c './measure "$1"' sh "$BESTARM_ID"
for i in 1 2 3; do ./measure "$BESTARM_ID"; done | tail -1
x=$(./measure "$BESTARM_ID"); echo "$x"
awk 'BEGIN { print length(ENVIRON["BESTARM_ID"]) }'
ssh lab ./measure < input # BESTARM_ID
if [ "$BESTARM_ID" = a ]; then echo 1; else echo 0; fi
docker run -e BESTARM_ID lab/measure
"$BESTARM_ID" --benchmark
""".strip().splitlines()
    + [
        "./measure \\\n  --arm {id} \\\n  --fast",
        "export A=1\n./measure {id}",
        "\t./measure\t{id}\n",
    ]
)

REFUSED = (
    r"""
{id}
'{id}' --fast
FOO=1 {id}
env {id}
env -u X {id}
nice -n 5 {id}
timeout 5 {id}
sudo -u root {id}
sudo -i {id}
exec {id}
command {id}
command -v {id}
./measure{id}
./measure --arm={id}
./measure "a {id}"
./measure 'a {id}'
./measure "'{id}'"
./measure \{id}
./measure {id}{id}
./measure "http://x/?a={id}"
./measure {id}#
./measure "x"{id}
./measure > {id}
./measure < {id}
./measure 2>{id}
FOO={id} ./measure
FOO=({id}) ./measure
./measure $({id})
./measure $(echo {id})
./measure `echo {id}`
./measure `date` {id}
./measure "`date` {id}"
./measure "$(echo {id})"
./measure ${X:-{id}}
./measure ${X:-$(date)} {id}
./measure $'{id}'
./measure $'x' {id}
./measure $((1 + {id}))
./measure <(echo {id})
./measure <<< {id}
(./measure {id})
{ ./measure {id}; }
f() { ./measure {id}; }; f
if ./measure {id}; then echo 1; fi
for x in {id}; do eval $x; done
while ./measure {id}; do :; done
case {id} in x) echo 1;; esac
[[ {id} -eq 1 ]]
! ./measure {id}
./measure 'unfinished {id}
./measure {id} "unfinished
sh -c {id}
sh -c '{id}'
sh -c "{id}"
sh -c './measure {id}'
sh -c "./measure {id}"
sh -ec {id}
sh -e -c {id}
sh -x -c {id}
sh -c 'eval "$0"' {id}
sh -s {id}
sh {id}
sh - {id}
/bin/sh -c {id}
s'h' -c {id}
\sh -c {id}
"sh" "-c" {id}
sh -\c {id}
bash -lc {id}
bash -O extglob -c {id}
bash --rcfile {id}
bash --rcfile x -c {id}
bash -o pipefail -c {id}
zsh -c {id}
env sh -c {id}
env -i sh -c {id}
env -i ssh host {id}
env -S {id}
env -S "sh -c" {id}
env --split-string {id}
env -S 'sh -c' -- {id}
/usr/bin/env bash -c {id}
nohup nice sh -c {id}
busybox sh -c {id}
timeout 5 sh -c {id}
sudo sh -c {id}
exec sh -c {id}
eval {id}
eval ./measure {id}
command eval {id}
trap {id} EXIT
. {id}
source {id}
alias m={id}; m
alias m='sh -c'; m {id}
ssh host {id}
ssh host ./measure {id}
sshpass -p x ssh host {id}
xargs {id}
echo {id} | xargs ./measure
echo {id} | sh
echo {id} | sudo sh
echo {id} | sudo -n sh
echo {id} | sudo -s
echo {id} | bash -s
echo {id} | sh -
echo {id} | sh /dev/stdin
echo {id} | . /dev/stdin
echo {id} | python
echo {id} | python3 -
echo {id} | ssh host
echo {id} | at now
echo {id} | sqlite3 lab.db
echo {id} | m4
echo {id} | dc
./measure {id} && eval "$X"
parallel ./measure ::: {id}
su -c {id}
su lab -c {id}
watch {id}
find . -exec {id} +
find . -exec sh -c {id} +
docker exec box sh -c {id}
kubectl exec pod -- bash -c {id}
tmux new-session {id}
xterm -e {id}
flock lock -c {id}
flock lock {id}
nix-shell --run {id}
sbatch --wrap {id}
rsync -e {id} a b
make {id}
npm run measure -- {id}
hyperfine {id}
watchexec {id}
awk {id}
awk -f prog {id}
awk -v id={id} 1
gawk '{print}' {id}
sed {id} file
sed -e {id} file
sqlite3 lab.db {id}
psql -c {id}
python {id}
python -c {id}
python -uc {id}
python3.11 -c {id}
/usr/bin/python3 -c {id}
python -c 'print({id})'
python -c 'import sys' {id}
python -m timeit {id}
python -W ignore -c {id}
perl -e {id}
perl -ne {id} file
ruby -e {id}
node -e {id}
node --eval {id}
node -p {id}
php -r {id}
Rscript -e {id}
R -e {id}
julia -E {id}
osascript -e {id}
printf -v {id} x
printf {id}
read {id}
unset {id}
export {id}
let {id}
declare {id}
test {id} -eq 1
[ {id} = x ] && echo 1
$SHELL -c {id}
$RUN {id}
$(which sh) -c {id}
$(which /usr/bin/xargs) {id}
/bin/s? -c {id}
someshell -c {id}
./someshell -ec {id}
>out sh -c {id}
./measure {id}; sh -c {id}
./measure {id} sh -c {id}
sh -c "./measure $BESTARM_ID"
sh -c "./measure '$BESTARM_ID'"
sh -c "$BESTARM_ID"
sh -c "./measure "$BESTARM_ID""
bash -lc "./measure ${BESTARM_ARM}"
docker exec box sh -c "./measure $BESTARM_ID"
kubectl exec pod -- bash -lc "./measure '$BESTARM_ID'"
python -c "print('$BESTARM_ID')"
eval "./measure $BESTARM_ID"
eval ./measure "$BESTARM_ID"
ssh host ./measure "$BESTARM_ID"
su lab -c "./measure $BESTARM_ID"
xargs ./measure "$BESTARM_ID"
env -S "./measure $BESTARM_ID"
awk "BEGIN { print $BESTARM_ID }"
sed "s/x/$BESTARM_ID/" file
make ARM="$BESTARM_ID"
./measure $BESTARM_ID
./measure --arm=$BESTARM_ID
./measure "x"$BESTARM_ID
""".strip().splitlines()
    + [
        "cat <<EOF\n{id}\nEOF",
        "sh <<EOF\n./measure {id}\nEOF",
        "sh <<'EOF'\n./measure {id}\nEOF",
        "cat <<EOF\nx\nEOF\n./measure {id}",
        "./measure 'a\n{id}'",
        "./measure {id}\r",
        "./measure\u00a0{id}",
        "./measure \u2028 {id}",
        "s\\\nh -c {id}",
        "./measure\\\n{id}",
        "sh -c \\\n {id}",
        "./measure\nsh -c {id}",
        "# a comment\nsh -c {id}",
        "./measure a#b {id}; sh -c {id}",
        "./measure '#' ; sh -c {id}",
    ]
)


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_commands_are_taken(text):
    found = prepare(text)
    command = text.partition(" #")[0]
    expected = re.sub(r"""'\{id\}'|"\{id\}"|\{id\}""", SAFE, command)
    assert found.line == expected + text[len(command) :]
    assert (found.text, found.argument) == (text, expected != command)


@pytest.mark.parametrize("text", REFUSED)
def test_commands_that_could_run_an_id_are_refused_and_the_way_is_named(text):
    with pytest.raises(InputError, match=r"BESTARM_ID") as info:
        prepare(text)
    assert SAFE in str(info.value)
    assert repr(text) in str(info.value)


@pytest.mark.parametrize("text", ["", "echo 1", "./measure {ID}", "./measure {arm}", "./measure $ID"])
def test_a_command_must_say_where_the_id_goes(text):
    with pytest.raises(InputError, match=r"must contain \{id\}, where the arm's id goes"):
        prepare(text)


def test_nul_characters_are_refused():
    with pytest.raises(InputError, match="NUL"):
        prepare("./measure {id} \0")
    with pytest.raises(InputError, match=r"arm 'a\\x00b' contains a NUL character"):
        check_ids(prepare("./measure # BESTARM_ID"), ["a", "a\0b"])


def test_ids_that_no_argument_can_be_are_refused_before_anything_runs():
    plain, alone = prepare("./measure {id}"), prepare("./measure # BESTARM_ID")
    check_ids(plain, ["", "a", "a-b", " -a", "$(touch x)", "\udcff", "x" * LONGEST])
    check_ids(alone, ["-rf", "--help", "-"])
    for id in ("-rf", "--help", "-"):
        with pytest.raises(InputError, match=f"arm '{id}' begins with '-'.*BESTARM_ID"):
            check_ids(plain, ["a", id])
    for template in (plain, alone):
        with pytest.raises(InputError, match=r"has 100,001 bytes; a command can be given 100,000"):
            check_ids(template, ["x" * (LONGEST + 1)])
        with pytest.raises(InputError, match="is not text"):
            check_ids(template, ["\ud800"])


def test_a_long_line_is_looked_through_at_once():
    assert prepare("./measure {id} " + "a" * 50_000 + " 'b'" * 5_000).argument
    with pytest.raises(InputError, match="too involved"):
        prepare("./measure {id} " + '"a$x' * 5_001)  # the last quote is open


HOSTILE = (
    "'; touch ran; '",
    '"; touch ran; "',
    "$(touch ran)",
    "`touch ran`",
    "touch ran",
    "; touch ran #",
    "&& touch ran",
    "| touch ran",
    "> ran",
    "a\ntouch ran\n",
    "a\r\n b \t",
    "x[$(touch ran)]",
    "$HOME $BESTARM_ARM ${BESTARM_ID} $0 $$",
    "{id}",
    "'{id}'",
    "*",
    "~",
    "\\",
    "\\'",
    "'",
    '"',
    "a  b",
    " ",
    "",
    "#",
    "!!",
    "%PATH%",
    "é 漢字 \N{SNOWMAN} \u2028",
    "\udcff",
)
AS_ARGUMENT = (
    "./measure {id}",
    "./measure '{id}'",
    './measure "{id}"',
    "A=1 ./measure {id} | tail -1",
    "true && ./measure '{id}' 2>&1 # the arm {id}",
    "nice -n 1 env A=1 ./measure {id}; true",
    "sh -c './measure \"$BESTARM_ID\"'",
    'sh -c \'./measure "$1"\' sh "$BESTARM_ID"',
)
MEASURE = """#!/bin/sh
printf '%s' "$#:$1" > argument
printf '%s' "$BESTARM_ID" > id
printf '%s' "$BESTARM_TRIAL $BESTARM_STUDY" > trial
echo 1
"""


@pytest.fixture
def bench(tmp_path, monkeypatch):
    """A folder with a program that writes down what it was given."""
    (tmp_path / "measure").write_text(MEASURE)
    (tmp_path / "measure").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def given_to(bench, template, id):
    """Run a command for an id; return what the program was given, and check that nothing else ran."""
    before = {"measure", "argument", "id", "trial"}
    assert Command(template, 60)(id, "T0007", "lab") == 1.0
    assert {path.name for path in bench.iterdir()} == before
    argument, told, trial = ((bench / name).read_bytes() for name in ("argument", "id", "trial"))
    assert trial == b"T0007 lab"
    return argument, told


@pytest.mark.parametrize("template", AS_ARGUMENT)
def test_whatever_an_id_is_it_arrives_as_one_argument_and_nothing_else_runs(bench, template):
    for id in HOSTILE:
        told = id.encode("utf-8", "surrogateescape")
        assert given_to(bench, template, id) == (b"1:" + told, told), id


@pytest.mark.parametrize("id", ["-rf", "--help", "-", "-$(touch ran)"])
def test_an_id_that_begins_with_a_dash_travels_by_the_environment_only(bench, id):
    told = id.encode()
    assert given_to(bench, "./measure # BESTARM_ID", id) == (b"0:", told)
    assert given_to(bench, './measure -- "$BESTARM_ID"', id) == (b"2:--", told)
    with pytest.raises(PullError, match=re.escape(f"arm {id!r} begins with '-'")):
        Command("./measure {id}")(id)


@pytest.mark.parametrize(
    "text", ["bash -c '... {id}'", "./m 'a {id}'", './m "--arm={id}"', "./m {id}.csv", "eval {id}"]
)
def test_ids_within_a_text_are_refused_before_anything_runs(text):
    with pytest.raises(InputError, match="BESTARM_ID"):
        Command(text)
