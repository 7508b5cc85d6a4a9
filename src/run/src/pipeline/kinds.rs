//! Lists the commands that can be steps of a pipeline, and which of their options name inputs and outputs. All other
//! options are passed to the command unchanged.

/// A command that can be a step.
#[derive(Debug)]
pub struct StepKind {
    /// Name of the command.
    pub name: &'static str,
    /// Key in the pipeline file for the positional arguments, if the command has any.
    pub positional: Option<&'static str>,
    /// Options that name inputs.
    pub inputs: &'static [InputKey],
    /// Options that name outputs. If an input refers to a step without naming an output, it means the first of these.
    pub outputs: &'static [OutputKey],
    /// Whether the standard output of the command is a result to keep.
    pub prints: Prints,
}

/// An option that names inputs.
#[derive(Debug)]
pub struct InputKey {
    /// Key of the option in the pipeline file.
    pub key: &'static str,
    /// Whether inputs may have names, as in `NAME=PATH`.
    pub named: bool,
}

/// An option that names an output.
#[derive(Debug)]
pub struct OutputKey {
    /// Key of the option in the pipeline file.
    pub key: &'static str,
    /// Suffix of the default path, which is the name of the step followed by the suffix. `None` if the output is
    /// written only on request.
    pub default: Option<&'static str>,
    /// Whether the option takes several outputs, each with a name, as in `NAME=PATH`.
    pub named: bool,
}

/// Whether the standard output of a step is a result.
#[derive(Debug, PartialEq, Eq)]
pub enum Prints {
    /// The standard output is always a result.
    Always,
    /// The standard output is a result unless the step has another output.
    WithoutOutput,
    /// The standard output is never a result.
    Nothing,
}

const fn input(key: &'static str) -> InputKey {
    InputKey { key, named: false }
}

const fn named(key: &'static str) -> InputKey {
    InputKey { key, named: true }
}

const fn output(key: &'static str, suffix: &'static str) -> OutputKey {
    OutputKey { key, default: Some(suffix), named: false }
}

const fn on_request(key: &'static str) -> OutputKey {
    OutputKey { key, default: None, named: false }
}

const fn named_on_request(key: &'static str) -> OutputKey {
    OutputKey { key, default: None, named: true }
}

/// All commands that can be steps.
pub(super) const KINDS: &[StepKind] = &[
    StepKind {
        name: "convert",
        positional: Some("input"),
        inputs: &[
            input("input"),
            input("names"),
            input("categories_from"),
            input("common_features"),
            input("column_description"),
        ],
        outputs: &[output("output", "")],
        prints: Prints::Nothing,
    },
    StepKind {
        name: "describe",
        positional: Some("path"),
        inputs: &[input("path"), input("permutation")],
        outputs: &[],
        prints: Prints::Always,
    },
    StepKind {
        name: "train",
        positional: None,
        inputs: &[
            input("data"),
            named("valid"),
            input("config"),
            input("start_model"),
            named("start_scores"),
            input("costs"),
        ],
        outputs: &[
            output("model", ".parquet"),
            on_request("rounds"),
            on_request("stats"),
            on_request("oob"),
            on_request("strength"),
            named_on_request("model_for"),
        ],
        prints: Prints::Nothing,
    },
    StepKind {
        name: "predict",
        positional: None,
        inputs: &[input("model"), input("data"), input("start_scores")],
        outputs: &[output("output", ".parquet"), on_request("scores"), on_request("stats")],
        prints: Prints::Nothing,
    },
    StepKind {
        name: "evaluate",
        positional: Some("files"),
        inputs: &[
            named("files"),
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
    StepKind {
        name: "compare",
        positional: Some("files"),
        inputs: &[named("files"), named("run"), input("qrels"), input("data")],
        outputs: &[output("output", ".parquet")],
        prints: Prints::Always,
    },
    StepKind {
        name: "cv",
        positional: None,
        inputs: &[input("data"), input("config"), input("search")],
        outputs: &[output("output", "")],
        prints: Prints::Always,
    },
    StepKind {
        name: "blend",
        positional: Some("models"),
        inputs: &[named("models"), named("predictions"), input("data")],
        outputs: &[output("output", ".parquet")],
        prints: Prints::Always,
    },
    StepKind {
        name: "augment",
        positional: None,
        inputs: &[input("data"), named("model")],
        outputs: &[output("output", "")],
        prints: Prints::Nothing,
    },
    StepKind {
        name: "cost",
        positional: None,
        inputs: &[named("model"), input("data"), input("costs")],
        outputs: &[output("output", ".parquet")],
        prints: Prints::Always,
    },
    StepKind {
        name: "impute",
        positional: None,
        inputs: &[input("data"), input("like")],
        outputs: &[output("output", ""), on_request("filled")],
        prints: Prints::Always,
    },
    StepKind {
        name: "select",
        positional: None,
        inputs: &[input("source"), input("like")],
        outputs: &[output("output", "")],
        prints: Prints::Nothing,
    },
    StepKind {
        name: "sql",
        positional: Some("run"),
        inputs: &[named("table"), input("file"), input("run")],
        outputs: &[on_request("output")],
        prints: Prints::WithoutOutput,
    },
    StepKind {
        name: "report",
        positional: Some("runs"),
        inputs: &[named("runs"), input("display")],
        outputs: &[output("output", ".html"), on_request("disputed")],
        prints: Prints::Nothing,
    },
    StepKind {
        name: "export",
        positional: Some("model"),
        inputs: &[input("model"), input("features"), input("data")],
        outputs: &[output("output", ".txt")],
        prints: Prints::Nothing,
    },
    StepKind {
        name: "import",
        positional: Some("file"),
        inputs: &[input("file"), input("names"), input("categories_from")],
        outputs: &[output("output", ".parquet")],
        prints: Prints::Nothing,
    },
];

/// Keys that affect how a step runs but not its outputs. If only these change, the step does not run again.
pub(crate) const RESOURCE_KEYS: &[&str] = &[
    "threads",
    "memory_limit",
    "compact",
    "cache",
    "checkpoint_every",
    "instance_credentials",
    "cluster",
    "tls_ca",
    "tls_certificate",
    "tls_key",
    "token_file",
];

/// Options that the run sets itself, and that pipelines therefore cannot set.
pub(crate) const RUN_CONTROLLED: &[&str] =
    &["overwrite", "allow_write", "resume", "checkpoint", "help", "version", "quiet", "log", "as_step"];

impl StepKind {
    /// Returns the command with this name; `None` if there is none or if it cannot be a step.
    pub fn named(name: &str) -> Option<&'static StepKind> {
        KINDS.iter().find(|kind| kind.name == name)
    }

    /// Returns the input option for a key; `None` if the key does not name inputs.
    pub fn input(&self, key: &str) -> Option<&'static InputKey> {
        self.inputs.iter().find(|input| input.key == key)
    }

    /// Whether a key names an output.
    pub(crate) fn is_output(&self, key: &str) -> bool {
        self.outputs.iter().any(|output| output.key == key)
    }
}
