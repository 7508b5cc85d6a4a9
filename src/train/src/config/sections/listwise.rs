//! Parameters of listwise trees, which are split by the ranking of whole queries.

use super::super::keys::{Key, KeyKind, SHARE, Written};
use super::super::learners::CriterionName;
use super::super::raw::RawParameters;
use super::super::settings::TrainSettings;
use super::super::value::ValueError;
use super::super::words::{NamedEnum, real, word};
use super::{Candidates, Sampling, Section};
use planetree_base::error::Result;
use planetree_metric::{Discount, Metric};

/// Order in which the leaves of a listwise tree are split. Such a tree chooses splits by the expected NDCG of whole
/// queries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeafOrder {
    /// The oldest leaf, so that trees grow level by level.
    Breadth,
    /// A random leaf.
    Random,
    /// The leaf with the most rows.
    Biggest,
    /// The leaf with the highest score.
    MostRelevant,
    /// The newest leaf, the left child before the right one, so that a subtree is complete before the next begins.
    Depth,
}

impl NamedEnum for LeafOrder {
    const ALL: &'static [(&'static str, Self)] = &[
        ("breadth", LeafOrder::Breadth),
        ("random", LeafOrder::Random),
        ("biggest", LeafOrder::Biggest),
        ("most_relevant", LeafOrder::MostRelevant),
        ("depth", LeafOrder::Depth),
    ];
}

/// Parameters of listwise splits, which are chosen by the expected value of a metric over whole queries.
#[derive(Debug, Clone, PartialEq)]
pub struct ListwiseParameters {
    /// Order in which leaves are split.
    pub order: LeafOrder,
    /// Discount of a document's gain by rank.
    pub discount: Discount,
    /// Number of top ranks that contribute to NDCG; `None` for all.
    pub truncation: Option<u32>,
    /// The metric. NDCG has the gains, discount and truncation of these parameters; other metrics follow the convention
    /// of the training.
    pub metric: Metric,
    /// Fraction of the queries sampled for the gains of each node.
    pub queries_per_node: f64,
}

/// Parameters of listwise trees, before validation.
#[derive(Debug, Clone, PartialEq)]
pub struct RawListwise {
    /// Number of top levels with listwise splits. Deeper levels use the forest's criterion; `None` if all levels use
    /// it.
    pub levels: Option<u32>,
    /// Parameters of the splits.
    pub splits: ListwiseParameters,
}

impl Default for RawListwise {
    fn default() -> Self {
        let splits = ListwiseParameters {
            order: LeafOrder::Breadth,
            discount: Discount::Log2,
            truncation: None,
            metric: Metric::Ndcg(None),
            queries_per_node: 0.0,
        };
        RawListwise { levels: None, splits }
    }
}

impl RawParameters {
    /// Returns whether any level of a tree is split by the ranking of whole queries.
    pub(in super::super) fn is_listwise(&self) -> bool {
        self.forest.criterion == CriterionName::Ndcg || self.listwise.levels.is_some()
    }
}

/// Parameters of listwise trees.
pub(crate) static LISTWISE: Section = Section { keys: KEYS, depends: true, check };

static KEYS: &[Key] = &[
    Key {
        name: "listwise_metric",
        kind: KeyKind::Metric {
            set: |raw, metric| raw.listwise.splits.metric = metric,
            get: |raw| raw.listwise.splits.metric,
        },
        default: "ndcg",
        omits_default: true,
        help: "Listwise trees: metric whose expected value chooses splits; ndcg is the fastest",
        ..Key::PLAIN
    },
    Key {
        name: "queries_per_node",
        kind: real!(listwise.splits.queries_per_node, SHARE),
        default: "1.0",
        omits_default: true,
        help: "Listwise trees: fraction of the queries sampled for the gains of each node",
        ..Key::PLAIN
    },
    Key {
        name: "leaf_order",
        kind: word!(listwise.splits.order),
        default: "breadth",
        help: "Listwise trees: order in which leaves are split; the gain of a split depends on all other leaves",
        ..Key::PLAIN
    },
    Key {
        name: "listwise_discount",
        kind: KeyKind::Custom {
            expected: |_| "log2, log2^ALPHA, power:BETA or letor",
            set: set_discount,
            get: |raw| format!("\"{}\"", raw.listwise.splits.discount),
        },
        default: "log2",
        help: "Listwise trees: discount of a document's gain by rank, as log2, log2^ALPHA, power:BETA or letor",
        ..Key::PLAIN
    },
    Key {
        name: "listwise_truncation",
        kind: KeyKind::Limit {
            range: 1..=u32::MAX,
            set: |raw, value| raw.listwise.splits.truncation = value,
            get: |raw| raw.listwise.splits.truncation,
        },
        default: "0",
        help: "Listwise trees: number of top ranks that contribute to NDCG; 0 for all",
        ..Key::PLAIN
    },
];

fn set_discount(raw: &mut RawParameters, written: Written<'_>) -> Result<(), Option<ValueError>> {
    raw.listwise.splits.discount = Discount::parse(written.text).ok_or(None)?;
    Ok(())
}

/// Checks the requirements of listwise trees, and rejects listwise parameters if no level is listwise.
fn check(settings: &TrainSettings, raw: &mut RawParameters) -> Result<()> {
    if raw.forest.criterion == CriterionName::Ndcg && raw.listwise.levels.is_some() {
        // Settings of the user override the preset.
        match (settings.is_chosen("criterion"), settings.is_chosen("listwise_levels")) {
            (true, false) => raw.listwise.levels = None,
            (false, true) => raw.forest.criterion = CriterionName::Entropy,
            _ => {
                return Err(settings.fault(
                    "listwise_levels",
                    "with criterion=ndcg all levels are listwise",
                    "remove one of them, or set criterion=entropy for the levels below",
                ));
            }
        }
    }
    if !raw.is_listwise() {
        for key in KEYS {
            let given = key.print(raw);
            key.reset(raw);
            if settings.is_chosen(key.name) && given != key.print(raw) {
                return Err(settings.fault(
                    key.name,
                    "only listwise trees use it",
                    "remove it, or set criterion=ndcg or listwise_levels",
                ));
            }
        }
        return Ok(());
    }
    if !matches!(raw.candidates.kind, Candidates::Static | Candidates::Exact) {
        let (problem, remedy) =
            ("listwise trees need static or exact candidates", "set candidates=static or candidates=exact");
        return Err(settings.fault("candidates", problem, remedy));
    }
    check_metric(settings, raw)?;
    if raw.forest.criterion == CriterionName::Ndcg {
        if settings.is_chosen("redraw_features") && raw.forest.redraw_features {
            return Err(settings.fault(
                "redraw_features",
                "listwise splits consider exactly features_per_node features",
                "remove it, or set redraw_features=false",
            ));
        }
        raw.forest.redraw_features = true; // no level uses it
    }
    if raw.forest.pairs_per_document.is_some() {
        return Err(settings.fault(
            "pairs_per_document",
            "listwise trees are trained on whole queries, not on pairs",
            "remove it, or set criterion=entropy and listwise_levels=0",
        ));
    }
    let draws = raw.tree.sampling.fraction < 1.0 || raw.forest.bootstrap;
    if draws && raw.tree.sampling.unit == Sampling::Rows {
        return Err(settings.fault(
            "bagging_by",
            "listwise trees are trained on whole queries",
            "set bagging_by=queries, or query_fraction instead of bagging_fraction",
        ));
    }
    Ok(())
}

/// Rejects metrics that do not measure a ranking on a scale up to 1, and parameters that only NDCG has.
fn check_metric(settings: &TrainSettings, raw: &mut RawParameters) -> Result<()> {
    let metric = raw.listwise.splits.metric;
    if let Metric::Ndcg(depth) = metric {
        if depth.is_some() && raw.listwise.splits.truncation.is_some() {
            return Err(settings.fault(
                "listwise_truncation",
                &format!("conflicts with the depth of listwise_metric={metric}"),
                "remove one of them",
            ));
        }
        return Ok(());
    }
    let (problem, remedy) = match metric {
        Metric::Rmse => {
            ("does not depend on the ranking", "set listwise_metric=ndcg, err or map, for example")
        }
        Metric::Dcg(_) => {
            ("has no upper limit, so long queries would outweigh others", "set listwise_metric=ndcg")
        }
        Metric::Inversions => {
            ("has no upper limit, so long queries would outweigh others", "set listwise_metric=tau")
        }
        _ => {
            for name in ["listwise_discount", "listwise_truncation", "label_gain"] {
                let Some(key) = Key::named(name) else { continue };
                let given = key.print(raw);
                key.reset(raw);
                if settings.is_chosen(name) && given != key.print(raw) {
                    let problem = format!("only listwise_metric=ndcg has it, not {metric}");
                    return Err(settings.fault(name, &problem, "remove it; other metrics follow convention"));
                }
            }
            return Ok(());
        }
    };
    Err(settings.fault("listwise_metric", &format!("{metric} {problem}"), remedy))
}
