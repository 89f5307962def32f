"""The commands by what they are for: the module of each, and what it does, so that a list of them imports none."""

COMMANDS: dict[str, dict[str, tuple[str, str]]] = {
    "One run": {
        "run": ("run", "Find the best arm of a table"),
        "plan": ("plan", "Say how much budget is needed"),
        "design": ("design", "Say which rows to measure, and how often"),
        "policies": ("run", "List the policies there are, those of installed packages too, or explain one"),
    },
    "Studies": {
        "create-study": ("studies", "Begin a study"),
        "studies": ("studies", "List the studies of a storage, with how far each has come"),
        "copy-study": ("studies", "Copy a study to another storage and compare the records"),
        "delete-study": ("studies", "Forget a study and all its results"),
        "upgrade": ("studies", "Make all studies of log version 1 ones of version 2, after a copy"),
        "doctor": ("studies", "Read a storage and say what is wrong and what to do"),
    },
    "Asking and telling": {
        "ask": ("asking", "Say what to measure next"),
        "tell": ("asking", "Take results in, the file of `ask` with rewards filled in"),
        "import": ("asking", "Add earlier observations, rows of `arm` and `reward`"),
        "fail": ("asking", "Say that trials could not be made"),
        "hand-back": ("asking", "Give trials back that were asked by mistake and not measured"),
        "close-round": ("asking", "Go on without the answers that are still out"),
        "run-study": ("answering", "Make a study's observations, resuming where it stopped"),
    },
    "Answers": {
        "best": ("answering", "Print the arm to choose, its estimate, and how sure that is"),
        "report": ("answering", "Write one page that says what was found, how sure it is, and what was spent"),
        "trials": ("correcting", "Show every trial and result, what came of it and what was corrected"),
    },
    "Putting right": {
        "amend": ("correcting", "Let another value hold for a result"),
        "exclude": ("correcting", "Let results not count"),
        "restore": ("correcting", "Let excluded results count again"),
        "withdraw": ("correcting", "Take an arm out of the race"),
        "undo": ("correcting", "Take back the last withdrawal, correction or finish, or the one of a RECORD"),
        "finish": ("correcting", "Ask for nothing more"),
        "add-arms": ("correcting", "Put the arms of another table into the race"),
        "raise-budget": ("correcting", "Change the budget to a larger one"),
    },
    "This command line": {
        "help": ("helping", "Say what bestarm can do, or what one command does"),
        "completion": ("helping", "Print what lets a shell complete commands and options at Tab"),
    },
    "Research": {
        "bench": ("bench", "Measure policies"),
        "instances": ("bench", "List the instances there are, with one line each and what can be set"),
        "reproduce": (
            "bench",
            "Run every experiment of the paper in three settings, draw its figures, and say which of its sentences "
            "hold",
        ),
    },
}
HOMES = {name: home for some in COMMANDS.values() for name, (home, _) in some.items()}
