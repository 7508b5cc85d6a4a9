//! Options of binning, and its result: the bins of all features and their layout.

use super::cuts::FeatureBins;
use super::layout::BinLayout;
use super::partition::{CodeColumn, Codes, assemble, schema};
use super::summary::{RowSample, ValueDistribution};
use crate::config::{BinNeeds, MissingPolicy, Parameters, TreeParameters};
use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use planetree_data::source::LabelledData;
use planetree_model::model::FeatureNormalisation;

/// Binning options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BinOptions {
    /// Maximum number of bins per feature; `None` gives each distinct value its own bin.
    pub max_bin: Option<usize>,
    /// How missing values are handled.
    pub missing: MissingPolicy,
    /// Whether features that have the same code in most rows may be stored sparsely.
    pub sparse: bool,
    /// Whether the features of trees are normalised over the documents of each query before they are binned.
    pub by_query: bool,
}

impl BinOptions {
    /// Returns the options for one feature. If its values are words, they are not normalised, and missing values always
    /// keep a code of their own, because no number can replace a missing word.
    pub fn of_feature(self, source: &LabelledData, feature: usize) -> Self {
        match source.has_words(feature) {
            true => BinOptions { missing: MissingPolicy::Learned, by_query: false, ..self },
            false => self,
        }
    }

    /// Derives the binning options from training parameters.
    pub fn of(parameters: &Parameters) -> Self {
        let BinNeeds { max_bin, sparse } = parameters.learner.config().bins();
        let normalisation = parameters.tree().map(TreeParameters::applied_normalisation).unwrap_or_default();
        let by_query = normalisation == FeatureNormalisation::Query;
        BinOptions { max_bin, missing: parameters.missing, sparse, by_query }
    }

    /// Returns whether codes may be stored once, by row only. Forests look up the codes of single rows so often that they
    /// need columns; without a maximum number of bins, codes are stored once anyway.
    pub(crate) fn may_be_compact(&self) -> bool {
        self.sparse && self.max_bin.is_some()
    }

    pub(crate) fn keep(&self, rows: u64) -> RowSample {
        if self.max_bin.is_some() { RowSample::sample_of(rows) } else { RowSample::ALL }
    }

    /// Chooses the bins of a feature from its summary.
    pub fn bins(&self, summary: &ValueDistribution) -> FeatureBins {
        match self.max_bin {
            Some(max_bin) => FeatureBins::equal_depth(summary, self.missing, max_bin),
            None => FeatureBins::every_value(summary, self.missing),
        }
    }

    /// Combines the bins of all features with the layout that these options require.
    pub fn binning(&self, features: Vec<FeatureBins>) -> Binning {
        Binning { layout: self.layout(&features), features, by_query: self.by_query }
    }

    pub(super) fn layout(&self, features: &[FeatureBins]) -> BinLayout {
        BinLayout::of_kind(self.max_bin.is_some(), self.sparse, features)
    }
}

/// Bins and layout of all features.
#[derive(Debug, Clone, PartialEq)]
pub struct Binning {
    /// The bins of each feature.
    pub features: Vec<FeatureBins>,
    /// Assignment of features to groups.
    pub layout: BinLayout,
    /// Whether the features are normalised over the documents of each query before they are binned.
    pub by_query: bool,
}

impl Binning {
    /// Returns the same bins in a layout that stores codes once.
    pub(super) fn compact(self) -> Self {
        Binning { layout: self.layout.compact(&self.features), ..self }
    }

    /// Puts the codes of all features together.
    pub(super) fn assemble_codes(&self, mut columns: Vec<Option<CodeColumn>>, rows: usize) -> Codes {
        let arrays = self.layout.groups.iter().map(|group| {
            let take = |feature: u32| columns[feature as usize].take().expect("a feature is in one group");
            assemble(group, rows, self, take)
        });
        self.batch(arrays.collect(), rows)
    }

    /// Puts the arrays of all groups together.
    pub(super) fn batch(&self, groups: Vec<(ArrayRef, Vec<ArrayRef>)>, rows: usize) -> Codes {
        let (mut arrays, columns): (Vec<ArrayRef>, Vec<Vec<ArrayRef>>) = groups.into_iter().unzip();
        arrays.extend(columns.into_iter().flatten());
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(schema(&self.layout), arrays, &options);
        Codes::new(batch.expect("the arrays are those of the schema"))
    }
}
