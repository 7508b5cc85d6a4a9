//! Converts between the variants of enumerations and the names that users write.

use super::{
    Candidates, CriterionName, EnsembleName, LeafOrder, LeafScore, LeafStep, MissingPolicy, ObjectiveName,
    Sampling, SplitBy,
};
use planetree_model::model::FeatureNormalisation;

/// An enumeration whose variants have names.
pub trait NamedEnum: Copy + PartialEq + 'static {
    /// All variants with their names.
    const ALL: &'static [(&'static str, Self)];

    /// Names that other tools use for the variants.
    const ALIASES: &'static [(&'static str, Self)] = &[];

    /// Finds the variant with this name or alias, ignoring case.
    fn named(text: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .chain(Self::ALIASES)
            .find(|(name, _)| name.eq_ignore_ascii_case(text))
            .map(|(_, choice)| *choice)
    }

    fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, choice)| *choice == self).map_or("", |(name, _)| name)
    }
}

impl NamedEnum for Candidates {
    const ALL: &'static [(&'static str, Self)] = &[
        ("static", Candidates::Static),
        ("streaming", Candidates::Streaming),
        ("exact", Candidates::Exact),
        ("random", Candidates::Random),
    ];
}

impl NamedEnum for EnsembleName {
    const ALL: &'static [(&'static str, Self)] =
        &[("boost", EnsembleName::Boost), ("bag", EnsembleName::Bag), ("linear", EnsembleName::Linear)];

    const ALIASES: &'static [(&'static str, Self)] = &[
        ("gbdt", EnsembleName::Boost),
        ("gbrt", EnsembleName::Boost),
        ("gbtree", EnsembleName::Boost),
        ("rf", EnsembleName::Bag),
        ("random_forest", EnsembleName::Bag),
        ("gblinear", EnsembleName::Linear),
    ];
}

impl NamedEnum for CriterionName {
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

impl NamedEnum for LeafOrder {
    const ALL: &'static [(&'static str, Self)] = &[
        ("breadth", LeafOrder::Breadth),
        ("random", LeafOrder::Random),
        ("biggest", LeafOrder::Biggest),
        ("most_relevant", LeafOrder::MostRelevant),
        ("depth", LeafOrder::Depth),
    ];
}

impl NamedEnum for LeafScore {
    const ALL: &'static [(&'static str, Self)] =
        &[("expected", LeafScore::Expected), ("square", LeafScore::Square), ("exp2", LeafScore::Exp2)];
}

impl NamedEnum for SplitBy {
    const ALL: &'static [(&'static str, Self)] =
        &[("newton", SplitBy::Newton), ("gradient", SplitBy::Gradient)];
}

impl NamedEnum for LeafStep {
    const ALL: &'static [(&'static str, Self)] = &[("newton", LeafStep::Newton), ("mean", LeafStep::Mean)];
}

impl NamedEnum for ObjectiveName {
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

impl NamedEnum for FeatureNormalisation {
    const ALL: &'static [(&'static str, Self)] = &[
        ("query", FeatureNormalisation::Query),
        ("z", FeatureNormalisation::Z),
        ("minmax", FeatureNormalisation::Minmax),
        ("none", FeatureNormalisation::None),
    ];

    const ALIASES: &'static [(&'static str, Self)] = &[("zscore", FeatureNormalisation::Z)];
}

impl NamedEnum for MissingPolicy {
    const ALL: &'static [(&'static str, Self)] = &[
        ("zero", MissingPolicy::Zero),
        ("one", MissingPolicy::One),
        ("mean", MissingPolicy::Mean),
        ("median", MissingPolicy::Median),
        ("low", MissingPolicy::Low),
        ("high", MissingPolicy::High),
        ("learned", MissingPolicy::Learned),
    ];
}

impl NamedEnum for Sampling {
    const ALL: &'static [(&'static str, Self)] = &[("rows", Sampling::Rows), ("queries", Sampling::Queries)];
}

/// Returns the names of all variants.
pub fn names<W: NamedEnum>() -> Vec<&'static str> {
    W::ALL.iter().map(|(name, _)| *name).collect()
}

/// Sets `choice` to the variant with this name. Returns false if there is none.
pub fn choose<W: NamedEnum>(choice: &mut W, text: &str) -> bool {
    match W::named(text) {
        Some(named) => {
            *choice = named;
            true
        }
        None => false,
    }
}
