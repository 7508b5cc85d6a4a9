//! The kinds of steps: which of a command's options name what it reads, and which what it writes. All
//! other options are the command's own affair.

/// A command that a step may run.
#[derive(Debug)]
pub struct Kind {
    /// The command.
    pub name: &'static str,
    /// The key of what stands on the command line without an option.
    pub positional: Option<&'static str>,
    /// The options that name inputs.
    pub inputs: &'static [InputKey],
    /// The options that name outputs; the first is what the step's name stands for.
    pub outputs: &'static [OutputKey],
    /// Whether it prints its result, so that this is worth keeping.
    pub prints: Prints,
}

/// An option that names inputs.
#[derive(Debug)]
pub struct InputKey {
    /// The key in the pipeline.
    pub key: &'static str,
    /// Whether inputs may have names: NAME=PATH.
    pub named: bool,
}

/// An option that names an output.
#[derive(Debug)]
pub struct OutputKey {
    /// The key in the pipeline.
    pub key: &'static str,
    /// What is added to the step's name where the pipeline does not name it; `None` if it is then not
    /// written.
    pub default: Option<&'static str>,
}

/// Whether a command prints a result.
#[derive(Debug, PartialEq, Eq)]
pub enum Prints {
    /// It does.
    Always,
    /// It does unless it writes an output.
    WithoutOutput,
    /// It prints nothing that matters.
    Nothing,
}

const fn input(key: &'static str) -> InputKey {
    InputKey { key, named: false }
}

const fn named(key: &'static str) -> InputKey {
    InputKey { key, named: true }
}

const fn output(key: &'static str, suffix: &'static str) -> OutputKey {
    OutputKey { key, default: Some(suffix) }
}

const fn on_request(key: &'static str) -> OutputKey {
    OutputKey { key, default: None }
}

/// All kinds.
pub const KINDS: &[Kind] = &[
    Kind {
        name: "convert",
        positional: Some("input"),
        inputs: &[input("input"), input("names"), input("categories_from"), input("column_description")],
        outputs: &[output("output", "")],
        prints: Prints::Nothing,
    },
    Kind {
        name: "describe",
        positional: Some("path"),
        inputs: &[input("path"), input("permutation")],
        outputs: &[],
        prints: Prints::Always,
    },
    Kind {
        name: "train",
        positional: None,
        inputs: &[input("data"), named("valid"), input("config"), input("start_model")],
        outputs: &[
            output("model", ".parquet"),
            on_request("rounds"),
            on_request("stats"),
            on_request("oob"),
            on_request("strength"),
        ],
        prints: Prints::Nothing,
    },
    Kind {
        name: "predict",
        positional: None,
        inputs: &[input("model"), input("data")],
        outputs: &[output("output", ".parquet"), on_request("scores"), on_request("stats")],
        prints: Prints::Nothing,
    },
    Kind {
        name: "evaluate",
        positional: None,
        inputs: &[
            named("predictions"),
            named("scores"),
            input("data"),
            named("run"),
            input("qrels"),
            input("labels"),
            input("join"),
        ],
        outputs: &[output("output", ".parquet"), on_request("write_run")],
        prints: Prints::Always,
    },
    Kind {
        name: "compare",
        positional: Some("files"),
        inputs: &[named("files")],
        outputs: &[output("output", ".parquet")],
        prints: Prints::Always,
    },
    Kind {
        name: "cv",
        positional: None,
        inputs: &[input("data"), input("config"), input("search")],
        outputs: &[output("output", "")],
        prints: Prints::Always,
    },
    Kind {
        name: "sql",
        positional: Some("run"),
        inputs: &[named("table"), input("file"), input("run")],
        outputs: &[on_request("output")],
        prints: Prints::WithoutOutput,
    },
    Kind {
        name: "report",
        positional: Some("runs"),
        inputs: &[named("runs")],
        outputs: &[output("output", ".html")],
        prints: Prints::Nothing,
    },
    Kind {
        name: "export",
        positional: Some("model"),
        inputs: &[input("model")],
        outputs: &[output("output", ".txt")],
        prints: Prints::Nothing,
    },
    Kind {
        name: "import",
        positional: Some("file"),
        inputs: &[input("file"), input("names"), input("categories_from")],
        outputs: &[output("output", ".parquet")],
        prints: Prints::Nothing,
    },
];

/// Keys that say how to run a step and never what comes out of it: they make no step run again.
pub const MEANS: &[&str] = &[
    "threads",
    "memory_limit",
    "cache",
    "checkpoint_every",
    "instance_credentials",
    "cluster",
    "tls_ca",
    "tls_certificate",
    "tls_key",
    "token_file",
];

/// Options that are not for pipelines, because a run decides about them.
pub const DECIDED: &[&str] =
    &["overwrite", "allow_write", "resume", "checkpoint", "help", "version", "quiet", "log", "as_step"];

impl Kind {
    /// The kind of a name.
    pub fn named(name: &str) -> Option<&'static Kind> {
        KINDS.iter().find(|kind| kind.name == name)
    }

    /// The input that a key names.
    pub fn input(&self, key: &str) -> Option<&'static InputKey> {
        self.inputs.iter().find(|input| input.key == key)
    }

    /// Whether a key names an output.
    pub fn is_output(&self, key: &str) -> bool {
        self.outputs.iter().any(|output| output.key == key)
    }
}
