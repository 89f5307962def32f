"""Studies that survive: ask and tell by files or code; every told result is on disk before anything else happens."""

from bestarm.answer.answer import Answer as Answer
from bestarm.study.copying import copy_study as copy_study
from bestarm.study.create import create_study as create_study
from bestarm.study.create import delete_study as delete_study
from bestarm.study.create import get_all_study_names as get_all_study_names
from bestarm.study.create import load_study as load_study
from bestarm.study.running import run as run
from bestarm.study.storage import Journal as Journal
from bestarm.study.storage import Memory as Memory
from bestarm.study.storage import SQLite as SQLite
from bestarm.study.storage import Storage as Storage
from bestarm.study.storage import open_storage as open_storage
from bestarm.study.study import Study as Study
from bestarm.study.successor import create_from as create_from
from bestarm.study.trials import Batch as Batch
from bestarm.study.trials import Trial as Trial
