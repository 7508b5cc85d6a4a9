//! Words that stand for a choice.

use super::{Candidates, CriterionName, EnsembleName, LeafOrder, Missing, ObjectiveName, Sampling};

/// A choice among few, each with a name.
pub trait Word: Copy + PartialEq + 'static {
    /// Every choice under its name.
    const ALL: &'static [(&'static str, Self)];

    /// Names that other tools have for them.
    const ALIASES: &'static [(&'static str, Self)] = &[];

    /// The choice of a name; case does not matter.
    fn named(text: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .chain(Self::ALIASES)
            .find(|(name, _)| name.eq_ignore_ascii_case(text))
            .map(|(_, choice)| *choice)
    }

    /// The name of the choice.
    fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, choice)| *choice == self).map_or("", |(name, _)| name)
    }
}

impl Word for Candidates {
    const ALL: &'static [(&'static str, Self)] = &[
        ("static", Candidates::Static),
        ("streaming", Candidates::Streaming),
        ("exact", Candidates::Exact),
        ("random", Candidates::Random),
    ];
}

impl Word for EnsembleName {
    const ALL: &'static [(&'static str, Self)] =
        &[("boost", EnsembleName::Boost), ("bag", EnsembleName::Bag)];

    const ALIASES: &'static [(&'static str, Self)] = &[
        ("gbdt", EnsembleName::Boost),
        ("gbrt", EnsembleName::Boost),
        ("gbtree", EnsembleName::Boost),
        ("rf", EnsembleName::Bag),
        ("random_forest", EnsembleName::Bag),
    ];
}

impl Word for CriterionName {
    const ALL: &'static [(&'static str, Self)] = &[
        ("variance", CriterionName::Variance),
        ("entropy", CriterionName::Entropy),
        ("gini", CriterionName::Gini),
        ("ndcg", CriterionName::Ndcg),
    ];

    const ALIASES: &'static [(&'static str, Self)] = &[
        ("squared_error", CriterionName::Variance),
        ("mse", CriterionName::Variance),
        ("log_loss", CriterionName::Entropy),
        ("listwise", CriterionName::Ndcg),
    ];
}

impl Word for LeafOrder {
    const ALL: &'static [(&'static str, Self)] = &[
        ("breadth", LeafOrder::Breadth),
        ("random", LeafOrder::Random),
        ("biggest", LeafOrder::Biggest),
        ("most_relevant", LeafOrder::MostRelevant),
    ];
}

impl Word for ObjectiveName {
    const ALL: &'static [(&'static str, Self)] = &[
        ("squared", ObjectiveName::Squared),
        ("logistic", ObjectiveName::Logistic),
        ("ranknet", ObjectiveName::RankNet),
        ("lambdarank", ObjectiveName::LambdaRank),
        ("gbrank", ObjectiveName::GbRank),
        ("xendcg", ObjectiveName::XeNdcg),
        ("listnet", ObjectiveName::ListNet),
        ("query_rmse", ObjectiveName::QueryRmse),
    ];

    const ALIASES: &'static [(&'static str, Self)] = &[
        ("regression", ObjectiveName::Squared),
        ("regression_l2", ObjectiveName::Squared),
        ("l2", ObjectiveName::Squared),
        ("mse", ObjectiveName::Squared),
        ("mean_squared_error", ObjectiveName::Squared),
        ("squared_error", ObjectiveName::Squared),
        ("reg:squarederror", ObjectiveName::Squared),
        ("binary", ObjectiveName::Logistic),
        ("binary:logistic", ObjectiveName::Logistic),
        ("rank:pairwise", ObjectiveName::RankNet),
        ("rank:ndcg", ObjectiveName::LambdaRank),
        ("lambdamart", ObjectiveName::LambdaRank),
        ("rank_xendcg", ObjectiveName::XeNdcg),
        ("xe_ndcg", ObjectiveName::XeNdcg),
        ("xe_ndcg_mart", ObjectiveName::XeNdcg),
        ("softmax", ObjectiveName::ListNet),
        ("querysoftmax", ObjectiveName::ListNet),
        ("queryrmse", ObjectiveName::QueryRmse),
    ];
}

impl Word for Missing {
    const ALL: &'static [(&'static str, Self)] = &[
        ("zero", Missing::Zero),
        ("one", Missing::One),
        ("mean", Missing::Mean),
        ("median", Missing::Median),
        ("learned", Missing::Learned),
    ];
}

impl Word for Sampling {
    const ALL: &'static [(&'static str, Self)] = &[("rows", Sampling::Rows), ("queries", Sampling::Queries)];
}

/// The names of all choices.
pub fn names<W: Word>() -> Vec<&'static str> {
    W::ALL.iter().map(|(name, _)| *name).collect()
}

/// Makes the choice that a text names; false if it names none.
pub fn choose<W: Word>(choice: &mut W, text: &str) -> bool {
    match W::named(text) {
        Some(named) => {
            *choice = named;
            true
        }
        None => false,
    }
}
