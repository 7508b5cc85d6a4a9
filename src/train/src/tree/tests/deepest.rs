//! Tests of the search of the deepest nodes.

use super::*;
use planetree_base::error::Error;

/// Rows that split finders cannot read one by one, so that histograms of whole nodes are requested.
struct Unread<'a>(LocalRows<'a, i64>);

impl RowStore<i64> for Unread<'_> {
    fn root(&mut self) -> Result<i64> {
        self.0.root()
    }

    fn split(&mut self, splits: &[NodeSplit]) -> Result<Vec<Vec<i64>>> {
        self.0.split(splits)
    }

    fn histograms(&mut self, groups: &[usize], nodes: &[WantedNode<i64>]) -> Result<Vec<NodeHistogram<i64>>> {
        self.0.histograms(groups, nodes)
    }

    fn part_sums(&mut self, parts: &[NodePart]) -> Result<Vec<i64>> {
        self.0.part_sums(parts)
    }

    fn local(&self) -> Result<&RowSets<i64>> {
        Err(Error::bug("rows", "not in this process"))
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn deepest_nodes_have_the_splits_of_whole_histograms(
        (columns, targets) in data(), partition_rows in 5usize..60, grouped in any::<bool>(),
        missing in prop::sample::select(vec![MissingSides::Either, MissingSides::Own]),
        room in prop::sample::select(vec![0, 200_000, usize::MAX]),
    ) {
        let rows = targets.len();
        let data = binned(&columns, rows, partition_rows, Some(if grouped { 255 } else { 30 }));
        prop_assume!(!data.binning.layout.groups.is_empty());
        let rules = SplitRules { missing, ..rules_of(rows) };
        let parameters: Parameters = crate::config::load(None, None, &[]).unwrap().first().clone();
        let choice = FeatureChoice::draw(parameters.tree().unwrap(), parameters.seed, &data.binning.layout, 1);
        let context = GrowContext { data: &data, rules, choice: &choice, histogram_bytes: room, penalties: None, monotone: None };
        let limits = TreeLimits { depth: 4, order: Order::Levels };
        let grow_by = |is_local: bool| {
            let mut finder: Box<dyn SplitFinder<i64>> = if grouped {
                let rules = StreamingRules { centroids: 12, grouped, workers: 1 };
                let bounds = Arc::new(WorkerBounds::divide(&data.rows, 1));
                Box::new(StreamingSplits::new(rules, bounds, KeptHistograms::default(), None))
            } else {
                Box::new(StaticBins::new(KeptHistograms::default()))
            };
            let mut sets = sets(&data, &targets);
            let local = LocalRows { data: &data, sets: &mut sets, count_bits: context.rules.scale.count_bits };
            let mut unread = Unread(local);
            let rows: &mut dyn RowStore<i64> = if is_local { &mut unread.0 } else { &mut unread };
            grow(&context, limits, rows, &mut *finder).unwrap()
        };
        // With one thread, the deepest nodes are searched apart however unequal they are.
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        prop_assert_eq!(pool.install(|| grow_by(true)), pool.install(|| grow_by(false)));
    }
}
