//! Defines the table of metrics, with names, aliases and help, and parses metric names.

use super::Metric;
use planetree_base::error::{Error, Result};
use planetree_base::suggest;
use std::fmt;
use std::str::FromStr;

/// Entry of the table of metrics.
struct NamedMetric {
    name: &'static str,
    aliases: &'static [&'static str],
    make: MetricSyntax,
    help: &'static str,
}

/// What may follow the name of a metric, and how the metric is created from it.
enum MetricSyntax {
    Plain(Metric),
    WithDepth(fn(Option<u32>) -> Metric),
    WithRange(fn(u32, u32) -> Metric),
}

/// The table of metrics, in the order that `Metric::name` expects. To add a metric, implement it in a file of its
/// own, add a variant to [`Metric`], an entry here and a case in `value.rs`.
const ENTRIES: [NamedMetric; 16] = [
    NamedMetric {
        name: "ndcg",
        aliases: &["normalized_dcg"],
        make: MetricSyntax::WithDepth(Metric::Ndcg),
        help: "normalised discounted cumulative gain",
    },
    NamedMetric {
        name: "dcg",
        aliases: &[],
        make: MetricSyntax::WithDepth(Metric::Dcg),
        help: "discounted cumulative gain",
    },
    NamedMetric {
        name: "err",
        aliases: &["expected_reciprocal_rank"],
        make: MetricSyntax::WithDepth(Metric::Err),
        help: "expected reciprocal rank",
    },
    NamedMetric {
        name: "map",
        aliases: &["ap", "mean_average_precision", "average_precision"],
        make: MetricSyntax::WithDepth(Metric::Map),
        help: "mean average precision",
    },
    NamedMetric {
        name: "mrr",
        aliases: &["rr", "recip_rank", "reciprocal_rank", "mean_reciprocal_rank"],
        make: MetricSyntax::WithDepth(Metric::Mrr),
        help: "reciprocal rank of the first relevant document",
    },
    NamedMetric {
        name: "p",
        aliases: &["precision", "prec", "pre"],
        make: MetricSyntax::WithDepth(Metric::Precision),
        help: "fraction of the top K documents that are relevant",
    },
    NamedMetric {
        name: "recall",
        aliases: &["r"],
        make: MetricSyntax::WithDepth(Metric::Recall),
        help: "fraction of the relevant documents that are in the top K",
    },
    NamedMetric {
        name: "rprec",
        aliases: &["r_precision", "rprecision", "r-prec"],
        make: MetricSyntax::Plain(Metric::RPrecision),
        help: "precision at the number of relevant documents",
    },
    NamedMetric {
        name: "success",
        aliases: &["hit", "hit_rate"],
        make: MetricSyntax::WithDepth(Metric::Success),
        help: "1 if one of the top K documents is relevant, otherwise 0",
    },
    NamedMetric {
        name: "auc",
        aliases: &["roc_auc"],
        make: MetricSyntax::Plain(Metric::Auc),
        help: "area under the ROC curve of a query",
    },
    NamedMetric {
        name: "pauc",
        aliases: &["partial_auc"],
        make: MetricSyntax::WithRange(Metric::PartialAuc),
        help: "partial area under the ROC curve between two false-positive rates in percent",
    },
    NamedMetric {
        name: "auc_pooled",
        aliases: &["pooled_auc"],
        make: MetricSyntax::Plain(Metric::AucPooled),
        help: "area under the ROC curve of all documents of all queries",
    },
    NamedMetric {
        name: "pauc_pooled",
        aliases: &["pooled_pauc"],
        make: MetricSyntax::WithRange(Metric::PartialAucPooled),
        help: "partial area under the ROC curve of all documents of all queries",
    },
    NamedMetric {
        name: "tau",
        aliases: &["kendall", "kendall_tau", "kendalltau"],
        make: MetricSyntax::Plain(Metric::KendallTau),
        help: "Kendall's tau-b between scores and labels",
    },
    NamedMetric {
        name: "inversions",
        aliases: &["inverted_pairs"],
        make: MetricSyntax::Plain(Metric::Inversions),
        help: "number of document pairs in the wrong order",
    },
    NamedMetric {
        name: "rmse",
        aliases: &["l2_root", "root_mean_squared_error"],
        make: MetricSyntax::Plain(Metric::Rmse),
        help: "root mean squared error of scores against labels, over rows",
    },
];

/// Returns the syntax and the description of every metric, for `--help`.
pub fn help_table() -> Vec<(String, &'static str)> {
    ENTRIES.iter().map(|entry| (entry.written(), entry.help)).collect()
}

impl NamedMetric {
    fn written(&self) -> String {
        match self.make {
            MetricSyntax::Plain(_) => self.name.to_owned(),
            MetricSyntax::WithDepth(_) => format!("{}@K", self.name),
            MetricSyntax::WithRange(_) => format!("{}@I-J", self.name),
        }
    }

    fn is_called(&self, name: &str) -> bool {
        let mut names = self.aliases.iter().chain([&self.name]);
        names.any(|known| known.eq_ignore_ascii_case(name))
    }

    /// Returns the remedy for a malformed metric, which shows how to write it.
    fn remedy(&self) -> String {
        match self.make {
            MetricSyntax::Plain(_) => format!("write {}", self.name),
            MetricSyntax::WithDepth(_) => format!("write {0}@10, or {0} for the whole list", self.name),
            MetricSyntax::WithRange(_) => {
                format!("write {0}@0-5 for the false-positive rates from 0 to 5 percent", self.name)
            }
        }
    }
}

impl Metric {
    /// Returns the name without a depth.
    fn name(&self) -> &'static str {
        let place = match self {
            Metric::Custom(custom) => return custom.name,
            Metric::Ndcg(_) => 0,
            Metric::Dcg(_) => 1,
            Metric::Err(_) => 2,
            Metric::Map(_) => 3,
            Metric::Mrr(_) => 4,
            Metric::Precision(_) => 5,
            Metric::Recall(_) => 6,
            Metric::RPrecision => 7,
            Metric::Success(_) => 8,
            Metric::Auc => 9,
            Metric::PartialAuc(..) => 10,
            Metric::AucPooled => 11,
            Metric::PartialAucPooled(..) => 12,
            Metric::KendallTau => 13,
            Metric::Inversions => 14,
            Metric::Rmse => 15,
        };
        ENTRIES[place].name
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        match self {
            Metric::Ndcg(Some(depth))
            | Metric::Dcg(Some(depth))
            | Metric::Err(Some(depth))
            | Metric::Map(Some(depth))
            | Metric::Mrr(Some(depth))
            | Metric::Precision(Some(depth))
            | Metric::Recall(Some(depth))
            | Metric::Success(Some(depth)) => write!(f, "@{depth}"),
            Metric::PartialAuc(from, to) | Metric::PartialAucPooled(from, to) => write!(f, "@{from}-{to}"),
            _ => Ok(()),
        }
    }
}

impl FromStr for Metric {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let text = text.trim();
        let (name, range) = match text.split_once('@') {
            Some((name, range)) => (name, Some(range)),
            None => trec_eval_name(text).unwrap_or((text, None)),
        };
        if name.eq_ignore_ascii_case("bpref") {
            return Err(Error::usage(
                "bpref is not available: planetree counts documents without a judgment as not relevant",
                "write the ranking with planetree evaluate --write-run FILE and use trec_eval, or compute map",
            ));
        }
        if is_number(text) {
            return Err(Error::usage(
                format_args!("unknown metric {text:?}: it may be a depth of the metric before it"),
                "name the metric for each depth, such as ndcg@5,ndcg@10",
            ));
        }
        if is_only_in_trec_eval(text) {
            return Err(Error::usage(
                format_args!("{text} of trec_eval is not available"),
                "write the ranking with planetree evaluate --write-run FILE and use trec_eval",
            ));
        }
        let Some(entry) = ENTRIES.iter().find(|entry| entry.is_called(name)) else {
            let names = ENTRIES.iter().flat_map(|entry| entry.aliases.iter().chain([&entry.name]).copied());
            let all: Vec<String> = ENTRIES.iter().map(NamedMetric::written).collect();
            return Err(Error::usage(
                format_args!("unknown metric {text:?}"),
                suggest::did_you_mean(
                    &suggest::nearest(name, names),
                    &format!("the metrics are {}", all.join(", ")),
                ),
            ));
        };
        let fault = |problem: &dyn fmt::Display| {
            Error::usage(format_args!("metric {text:?}: {problem}"), entry.remedy())
        };
        match (&entry.make, range) {
            (MetricSyntax::Plain(metric), None) => Ok(*metric),
            (MetricSyntax::Plain(_), Some(_)) => Err(fault(&format_args!("{} has no depth", entry.name))),
            (MetricSyntax::WithDepth(make), None) => Ok(make(None)),
            (MetricSyntax::WithDepth(make), Some(depth)) => match depth.parse() {
                Ok(depth) if depth > 0 => Ok(make(Some(depth))),
                _ => Err(fault(&format_args!("{depth:?} is not a valid depth"))),
            },
            (MetricSyntax::WithRange(_), None) => Err(fault(&format_args!("{} needs a range", entry.name))),
            (MetricSyntax::WithRange(make), Some(range)) => match percents(range) {
                Some((from, to)) => Ok(make(from, to)),
                None => Err(fault(&format_args!("{range:?} is not a range of percentages"))),
            },
        }
    }
}

/// Splits a metric of trec_eval with a cutoff, such as `ndcg_cut_10` or `P.10`, into name and cutoff.
fn trec_eval_name(text: &str) -> Option<(&str, Option<&str>)> {
    let (name, depth) = text.rsplit_once(['_', '.'])?;
    let name = name.strip_suffix("_cut").unwrap_or(name);
    is_number(depth).then_some((name, Some(depth)))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Checks whether a text is a measure of trec_eval without an equivalent here.
fn is_only_in_trec_eval(text: &str) -> bool {
    const NAMES: [&str; 6] = ["gm_map", "gm_bpref", "11pt_avg", "ndcg_rel", "infAP", "utility"];
    const FAMILIES: [&str; 7] =
        ["iprec_at_recall", "set_", "num_", "relative_P", "Rndcg", "Rprec_mult", "map_avgjg"];
    NAMES.contains(&text) || FAMILIES.iter().any(|family| text.starts_with(family))
}

/// Parses two percentages, the lower first. They are written as `0-5` or, as in Mohan's thesis, as `[0,5]`.
fn percents(range: &str) -> Option<(u32, u32)> {
    let range = range.strip_prefix('[').and_then(|range| range.strip_suffix(']')).unwrap_or(range);
    let (from, to) = range.split_once(['-', ','])?;
    let (from, to) = (from.trim().parse().ok()?, to.trim().parse().ok()?);
    (from < to && to <= 100).then_some((from, to))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_printed_as_they_are_read() {
        for name in ["ndcg", "ndcg@10", "err@5", "rmse", "p@5", "recall@10", "success@10", "auc", "pauc@0-5"]
            .into_iter()
            .chain(["auc_pooled", "pauc_pooled@0-5", "tau", "map"])
        {
            assert_eq!(name.parse::<Metric>().unwrap().to_string(), name);
            assert_eq!(name.to_uppercase().parse::<Metric>().unwrap().to_string(), name);
        }
        for (alias, name) in [
            ("precision@5", "p@5"),
            ("mean_average_precision", "map"),
            ("rr", "mrr"),
            ("pauc@[0,5]", "pauc@0-5"),
            ("ndcg_cut_10", "ndcg@10"),
            ("map_cut_100", "map@100"),
            ("ndcg_cut.10", "ndcg@10"),
            ("P.5", "p@5"),
            ("P_10", "p@10"),
            ("recall_100", "recall@100"),
            ("success_5", "success@5"),
            ("recip_rank", "mrr"),
            ("Rprec", "rprec"),
        ] {
            assert_eq!(alias.parse::<Metric>().unwrap().to_string(), name);
        }
    }

    #[test]
    fn the_table_leads_from_names_to_metrics_and_back() {
        for entry in &ENTRIES {
            for name in entry.aliases.iter().chain([&entry.name]) {
                let text = match entry.make {
                    MetricSyntax::Plain(_) => (*name).to_owned(),
                    MetricSyntax::WithDepth(_) => format!("{name}@7"),
                    MetricSyntax::WithRange(_) => format!("{name}@1-99"),
                };
                let metric: Metric = text.parse().unwrap();
                assert_eq!(metric.name(), entry.name);
                assert_eq!(metric.to_string(), text.replace(name, entry.name));
                assert_eq!(ENTRIES.iter().filter(|other| other.is_called(name)).count(), 1, "{name}");
            }
        }
        assert_eq!(help_table().len(), ENTRIES.len());
    }

    #[test]
    fn faulty_names_say_what_was_meant() {
        let all = "the metrics are ndcg@K, dcg@K, err@K, map@K, mrr@K, p@K, recall@K, rprec, success@K, auc, pauc@I-J, auc_pooled, pauc_pooled@I-J, tau, inversions, rmse";
        let pauc = "write pauc@0-5 for the false-positive rates from 0 to 5 percent";
        for (name, problem, remedy) in [
            ("ndgc@10", "unknown metric \"ndgc@10\"", "did you mean ndcg?"),
            ("accuracy", "unknown metric \"accuracy\"", all),
            (
                "10",
                "unknown metric \"10\": it may be a depth of the metric before it",
                "name the metric for each depth, such as ndcg@5,ndcg@10",
            ),
            ("", "unknown metric \"\"", all),
            ("rmse@10", "metric \"rmse@10\": rmse has no depth", "write rmse"),
            (
                "ndcg@0",
                "metric \"ndcg@0\": \"0\" is not a valid depth",
                "write ndcg@10, or ndcg for the whole list",
            ),
            ("err@", "metric \"err@\": \"\" is not a valid depth", "write err@10, or err for the whole list"),
            (
                "map@-5",
                "metric \"map@-5\": \"-5\" is not a valid depth",
                "write map@10, or map for the whole list",
            ),
            ("pauc", "metric \"pauc\": pauc needs a range", pauc),
            ("pauc@5-5", "metric \"pauc@5-5\": \"5-5\" is not a range of percentages", pauc),
            ("pauc@5-101", "metric \"pauc@5-101\": \"5-101\" is not a range of percentages", pauc),
        ] {
            let error = name.parse::<Metric>().unwrap_err();
            assert_eq!(error.to_string(), problem);
            assert_eq!(error.remedy(), Some(remedy));
        }
    }
}
