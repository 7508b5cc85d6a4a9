//! Checks and groups decoded chunks in the order of the input.

use super::categories::CategoryCodes;
use super::group_encoder::GroupEncoder;
use super::identifiers::identifiers;
use super::query_tracker::QueryTracker;
use super::side_files::CurrentSideFiles;
use super::zeros::ZeroFeatures;
use super::{ConvertOptions, QuerySample, Unlabelled, ZeroAsMissing};
use crate::dataset::{FeatureNames, Grouper, InputLine, Manifest, ManifestSource, RepairCount};
use crate::ingest::{Ingest, IngestTotals, InputFormat, TextFeatures};
use crate::rows::fault::RepairCounts;
use crate::rows::{Block, RowMajorBlock};
use planetree_base::error::{Error, Result};
use planetree_base::storage::interrupt;
use std::sync::Arc;

/// Processes decoded chunks in the order of the input.
pub(super) struct Sequencer {
    sides: CurrentSideFiles,
    categories: CategoryCodes,
    repairs: RepairCounts,
    max_errors: Option<u64>,
    grouper: Grouper,
    tracker: QueryTracker,
    /// Names of the inputs.
    names: Vec<String>,
    features: FeatureNames,
    /// The features of LETOR text that are kept; `None` if all are.
    text_features: Option<Arc<TextFeatures>>,
    checked_identifiers: bool,
    query_sample: QuerySample,
    zero_as_missing: ZeroAsMissing,
    zeros: Arc<ZeroFeatures>,
    unlabelled: Unlabelled,
    /// Number of features that occur in the rows so far.
    width: usize,
    encoder: GroupEncoder,
}

impl Sequencer {
    pub(super) fn new(
        ingest: &Ingest,
        options: &ConvertOptions,
        zeros: Arc<ZeroFeatures>,
        encoder: GroupEncoder,
    ) -> Self {
        let (features, names) = (ingest.layout().features.clone(), ingest.names());
        let group_rows = options.partition_rows.unwrap_or(usize::MAX);
        Sequencer {
            sides: CurrentSideFiles::new(ingest),
            categories: CategoryCodes::new(&features, &options.categories),
            repairs: RepairCounts::default(),
            max_errors: options.max_errors,
            grouper: Grouper::new(group_rows, (options.memory_limit / 2) as usize),
            tracker: QueryTracker::new(names.clone()),
            names,
            features,
            text_features: ingest.text_features().cloned(),
            checked_identifiers: false,
            query_sample: options.query_sample,
            zero_as_missing: options.zero_as_missing.clone(),
            zeros,
            unlabelled: options.unlabelled,
            width: 0,
            encoder,
        }
    }

    /// Performs the steps that must happen in the order of the input: adds the data of side files, assigns category
    /// codes, counts repairs, and checks that rows have labels if they must.
    pub(super) fn prepare(&mut self, input: u32, block: &mut Block) -> Result<()> {
        self.sides.add_to(input, block)?;
        self.zeros.check_categories(&block.categories, &self.features)?;
        for (feature, words) in std::mem::take(&mut block.categories) {
            block.recode(feature, &self.categories.codes(feature, &words)?);
        }
        self.count_repairs(&block.repairs)?;
        self.unlabelled.check(block, &self.names[input as usize])
    }

    /// Like [`Sequencer::prepare`], for rows that are to be sorted.
    pub(super) fn prepare_rows(&mut self, input: u32, rows: &mut RowMajorBlock) -> Result<()> {
        self.sides.add_to(input, &mut rows.block)?;
        self.zeros.check_categories(&rows.block.categories, &self.features)?;
        for (feature, words) in std::mem::take(&mut rows.block.categories) {
            rows.recode(feature, &self.categories.codes(feature, &words)?);
        }
        self.count_repairs(&rows.block.repairs)?;
        self.unlabelled.check(&rows.block, &self.names[input as usize])
    }

    /// Checks that the side files of the last input have no more data.
    pub(super) fn finish_side_files(&mut self) -> Result<()> {
        self.sides.finish()
    }

    fn count_repairs(&mut self, repairs: &RepairCounts) -> Result<()> {
        self.repairs.merge(repairs);
        match self.max_errors {
            Some(most) if self.repairs.total() > most => {
                let kinds: Vec<String> = self
                    .repairs
                    .by_kind()
                    .map(|(entry, count)| format!("{} {}", count, entry.name))
                    .collect();
                Err(Error::place(
                    "input",
                    format_args!("more than {most} faults: {}", kinds.join(", ")),
                    "correct the input, or raise --max-errors",
                ))
            }
            _ => Ok(()),
        }
    }

    /// Adds a block to the row groups and encodes the full ones.
    pub(super) fn group(&mut self, input: u32, block: Block) -> Result<()> {
        if !std::mem::replace(&mut self.checked_identifiers, true) {
            self.warn_of_identifiers(&block);
        }
        self.width = self.width.max(block.features.width());
        let (tracker, query_sample, encoder) = (&mut self.tracker, self.query_sample, &mut self.encoder);
        self.grouper.push(
            Arc::new(block),
            &mut |name, line| {
                tracker.begin(name, InputLine { input, line })?;
                Ok(query_sample.contains(name))
            },
            &mut |group| encoder.encode(group),
        )
    }

    /// Warns about features that look like identifiers. Only the first block of rows is examined, which is fast and
    /// sufficient.
    fn warn_of_identifiers(&self, block: &Block) {
        let found = identifiers(block, &self.features);
        let (names, list) = (found.join(", "), found.join(","));
        match found.len() {
            0 => {}
            1 => tracing::warn!(
                "{names} looks like an identifier, which a model can memorise; skip it with --ignore-columns {list}"
            ),
            _ => tracing::warn!(
                "{names} look like identifiers, which a model can memorise; skip them with --ignore-columns {list}"
            ),
        }
    }

    /// Writes the last row group, performs the final checks and commits the dataset.
    pub(super) fn finish(mut self, format: InputFormat, totals: IngestTotals) -> Result<Manifest> {
        match self.grouper.finish() {
            Some(group) => self.encoder.encode(group)?,
            None if self.tracker.is_empty() && self.unlabelled == Unlabelled::Drop => {
                return Err(self.unlabelled.nothing_left(self.tracker.first_input()));
            }
            None if self.tracker.is_empty() => {
                return Err(Error::place(
                    self.tracker.first_input(),
                    "there are no rows",
                    "pass an input with at least one line of data",
                ));
            }
            None => return Err(self.query_sample.empty_sample_error()),
        }
        self.tracker.finish()?;
        if let Some(features) = &self.text_features {
            features.check_width()?;
        }
        self.zeros.check_width(self.features.given().unwrap_or(self.width), &self.features)?;
        let writer = self.encoder.finish()?;
        interrupt::check()?;
        let fingerprint = self.query_sample.fingerprint(totals.fingerprint);
        let fingerprint = self.zero_as_missing.fingerprint(fingerprint);
        let fingerprint = self.unlabelled.fingerprint(fingerprint);
        let source = ManifestSource { format: format.name().to_owned(), bytes: totals.bytes, fingerprint };
        let mut manifest = Manifest::new(source);
        manifest.repairs = self
            .repairs
            .by_kind()
            .map(|(entry, count)| RepairCount { kind: entry.name.to_owned(), count })
            .collect();
        manifest.categories = self.categories.finish();
        writer.commit(manifest)
    }
}
