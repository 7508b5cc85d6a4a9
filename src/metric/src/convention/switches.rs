//! Defines the table of all convention switches, each of which sets one rule. Parsing and printing iterate over the
//! table.

use super::*;

/// One rule of a convention, written as `name=value`.
pub(crate) struct Switch {
    /// Name; parsing ignores case.
    pub name: &'static str,
    /// Valid values, for error messages.
    pub values: &'static str,
    pub(super) read: fn(&mut Convention, &str) -> Result<(), String>,
    pub(super) print: fn(&Convention) -> String,
}

/// All switches. A switch that also sets other switches must come before them.
const SWITCHES: [Switch; 19] = [
    Switch {
        name: "gain",
        values: "exp2, linear, positive, a table such as 0:1:3:7, a formula such as 3^l-1",
        read: |convention, text| Gain::parse(text).map(|gain| convention.gain = gain),
        print: |convention| convention.gain.to_string(),
    },
    Switch {
        name: "discount",
        values: "log2, letor, power:BETA, log2^ALPHA",
        read: |convention, text| known(Discount::parse(text)).map(|discount| convention.discount = discount),
        print: |convention| convention.discount.to_string(),
    },
    Switch {
        name: "depth",
        values: "all, a depth such as 10",
        read: |convention, text| read_depth(text).map(|depth| convention.depth = depth),
        print: |convention| print_depth(convention.depth),
    },
    Switch {
        name: "binary_depth",
        values: "all, a depth such as 10",
        read: |convention, text| read_depth(text).map(|depth| convention.binary_depth = depth),
        print: |convention| print_depth(convention.binary_depth),
    },
    Switch {
        name: "empty",
        values: "skip, or a number such as 0 or 1",
        read: |convention, text| {
            let empty = read_empty(text)?;
            (convention.empty, convention.map_empty, convention.recall_empty) = (empty, empty, empty);
            Ok(())
        },
        print: |convention| print_empty(convention.empty),
    },
    Switch {
        name: "map_empty",
        values: "skip, or a number such as 0 or 1",
        read: |convention, text| read_empty(text).map(|empty| convention.map_empty = empty),
        print: |convention| print_empty(convention.map_empty),
    },
    Switch {
        name: "recall_empty",
        values: "skip, or a number such as 0 or 1",
        read: |convention, text| read_empty(text).map(|empty| convention.recall_empty = empty),
        print: |convention| print_empty(convention.recall_empty),
    },
    Switch {
        name: "short",
        values: "truncate, pad, zero",
        read: |convention, text| word(&SHORT, text).map(|short| convention.short = short),
        print: |convention| name_of(&SHORT, convention.short),
    },
    Switch {
        name: "ties",
        values: "input, docid, average, worst, best, last",
        read: |convention, text| {
            let ties = word(&TIES, text)?;
            (convention.ties, convention.binary_ties) = (ties, ties);
            Ok(())
        },
        print: |convention| name_of(&TIES, convention.ties),
    },
    Switch {
        name: "binary_ties",
        values: "input, docid, average, worst, best, last",
        read: |convention, text| word(&TIES, text).map(|ties| convention.binary_ties = ties),
        print: |convention| name_of(&TIES, convention.binary_ties),
    },
    Switch {
        name: "relevant",
        values: "a minimum label such as 1, above:LABEL",
        read: |convention, text| {
            let threshold = match text.strip_prefix("above:") {
                Some(label) => number(label).map(Threshold::Above),
                None => number(text).map(Threshold::From),
            };
            known(threshold).map(|threshold| convention.relevant = threshold)
        },
        print: |convention| match convention.relevant {
            Threshold::From(label) => label.to_string(),
            Threshold::Above(label) => format!("above:{label}"),
        },
    },
    Switch {
        name: "map_normaliser",
        values: "relevant, depth, found",
        read: |convention, text| word(&NORMALISER, text).map(|value| convention.map_normaliser = value),
        print: |convention| name_of(&NORMALISER, convention.map_normaliser),
    },
    Switch {
        name: "map_depth",
        values: "k, all",
        read: |convention, text| word(&MAP_DEPTH, text).map(|whole| convention.map_whole = whole),
        print: |convention| name_of(&MAP_DEPTH, convention.map_whole),
    },
    Switch {
        name: "err_grade",
        values: "the highest grade such as 4, label",
        read: |convention, text| {
            let grade = match text {
                "label" => Some(ErrGrade::Label),
                _ => text.parse().ok().filter(|grade| (1..=64).contains(grade)).map(ErrGrade::Highest),
            };
            known(grade).map(|grade| convention.err_grade = grade)
        },
        print: |convention| match convention.err_grade {
            ErrGrade::Highest(grade) => grade.to_string(),
            ErrGrade::Label => "label".to_owned(),
        },
    },
    Switch {
        name: "err_depth",
        values: "all, a depth such as 10",
        read: |convention, text| read_depth(text).map(|depth| convention.err_depth = depth),
        print: |convention| print_depth(convention.err_depth),
    },
    Switch {
        name: "ideal",
        values: "list, judgments",
        read: |convention, text| word(&IDEAL, text).map(|ideal| convention.ideal = ideal),
        print: |convention| name_of(&IDEAL, convention.ideal),
    },
    Switch {
        name: "scores",
        values: "float64, float32",
        read: |convention, text| word(&WIDTH, text).map(|width| convention.scores = width),
        print: |convention| name_of(&WIDTH, convention.scores),
    },
    Switch {
        name: "auc",
        values: "query, pooled",
        read: |convention, text| word(&SCOPE, text).map(|scope| convention.auc = scope),
        print: |convention| name_of(&SCOPE, convention.auc),
    },
    Switch {
        name: "pauc",
        values: "area, standardised",
        read: |convention, text| word(&PARTIAL_AREA, text).map(|area| convention.pauc = area),
        print: |convention| name_of(&PARTIAL_AREA, convention.pauc),
    },
];

/// Returns all switches, in printing order.
pub(crate) fn switches() -> &'static [Switch] {
    &SWITCHES
}

const SHORT: [(&str, Short); 3] = [("truncate", Short::Truncate), ("pad", Short::Pad), ("zero", Short::Zero)];
const TIES: [(&str, Ties); 6] = [
    ("input", Ties::Input),
    ("docid", Ties::Document),
    ("average", Ties::Average),
    ("worst", Ties::Worst),
    ("best", Ties::Best),
    ("last", Ties::Last),
];
const NORMALISER: [(&str, MapNormaliser); 3] =
    [("relevant", MapNormaliser::Relevant), ("depth", MapNormaliser::Depth), ("found", MapNormaliser::Found)];
const MAP_DEPTH: [(&str, bool); 2] = [("k", false), ("all", true)];
const IDEAL: [(&str, Ideal); 2] = [("list", Ideal::List), ("judgments", Ideal::Judgments)];
const SCOPE: [(&str, AreaScope); 2] = [("query", AreaScope::Query), ("pooled", AreaScope::Pooled)];
const PARTIAL_AREA: [(&str, PartialArea); 2] =
    [("area", PartialArea::Area), ("standardised", PartialArea::Standardised)];
const WIDTH: [(&str, Width); 2] = [("float64", Width::Float64), ("float32", Width::Float32)];

fn word<T: Copy>(words: &[(&str, T)], text: &str) -> Result<T, String> {
    known(words.iter().find(|(word, _)| word.eq_ignore_ascii_case(text)).map(|(_, value)| *value))
}

fn name_of<T: PartialEq>(words: &[(&'static str, T)], value: T) -> String {
    words.iter().find(|(_, known)| *known == value).map(|(word, _)| (*word).to_owned()).unwrap_or_default()
}

fn known<T>(value: Option<T>) -> Result<T, String> {
    value.ok_or_else(|| "no such value".to_owned())
}

fn number<T: FromStr + Into<f64> + Copy>(text: &str) -> Option<T> {
    text.parse().ok().filter(|value: &T| (*value).into().is_finite())
}

fn read_depth(text: &str) -> Result<Option<u32>, String> {
    match text {
        "all" => Ok(None),
        _ => known(text.parse().ok().filter(|depth| *depth > 0).map(Some)),
    }
}

fn print_depth(depth: Option<u32>) -> String {
    depth.map_or("all".to_owned(), |depth| depth.to_string())
}

fn read_empty(text: &str) -> Result<Empty, String> {
    match text {
        "skip" => Ok(Empty::Skip),
        _ => known(number(text).map(Empty::Value)),
    }
}

fn print_empty(empty: Empty) -> String {
    match empty {
        Empty::Value(value) => value.to_string(),
        Empty::Skip => "skip".to_owned(),
    }
}
