use super::*;
use arrow::array::{AsArray, StringArray, UInt64Array};
use arrow::datatypes::{DataType, Field, Schema, UInt64Type};
use datafusion_execution::memory_pool::MemoryConsumer;
use planetree_base::random::Stream;
use std::sync::atomic::{AtomicUsize, Ordering};

fn schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("name", DataType::Utf8, false),
        Field::new("row", DataType::UInt64, false),
    ]))
}

fn batch(rows: &[(String, u64)]) -> RecordBatch {
    let names = StringArray::from_iter_values(rows.iter().map(|(name, _)| name));
    let numbers = UInt64Array::from_iter_values(rows.iter().map(|(_, row)| *row));
    RecordBatch::try_new(schema(), vec![Arc::new(names), Arc::new(numbers)]).unwrap()
}

fn reader(rows: Vec<(String, u64)>) -> OpenReader {
    Arc::new(move || {
        let batches: Vec<_> = rows.chunks(1000).map(|rows| Ok(batch(rows))).collect();
        Ok(Box::new(batches.into_iter()) as BatchIterator)
    })
}

fn rows_of(batches: PlanBatches) -> Vec<(String, u64)> {
    let rows = |batch: RecordBatch| -> Vec<(String, u64)> {
        let names = batch.column(0).as_string::<i32>().iter().map(|name| name.unwrap().to_owned());
        names.zip(batch.column(1).as_primitive::<UInt64Type>().values().to_vec()).collect()
    };
    batches.flat_map(|batch| rows(batch.unwrap())).collect()
}

#[test]
fn a_spilling_sort_gives_the_same_rows() {
    let mut draw = Stream::new(&[7]);
    let rows: Vec<(String, u64)> =
        (0..400_000).map(|row| (format!("query-{}", draw.bits() % 999), row)).collect();
    let mut expected = rows.clone();
    expected.sort();
    for (limit, threads, spills) in [(512 << 20, 1, false), (512 << 20, 3, false), (8 << 20, 3, true)] {
        let engine = Engine::new(threads, limit).unwrap();
        let readers = rows.chunks(140_000).map(|rows| reader(rows.to_vec())).collect();
        let plan = engine.scan(&schema(), readers).unwrap();
        assert_eq!(plan.partitions(), 3);
        let plan = engine.sort(plan, &["name", "row"]).unwrap();
        assert_eq!(plan.partitions(), 1);
        assert!(rows_of(engine.batches(&plan, 0).unwrap()) == expected, "{limit} {threads}");
        let sort = plan.0.children()[0].metrics().unwrap();
        assert_eq!(sort.spill_count().unwrap() > 0, spills, "{limit} {threads}");
    }
}

#[test]
fn sorts_leave_memory_for_merging() {
    let engine = Engine::new(2, 512 << 20).unwrap();
    let environment = engine.context.runtime_env();
    let pool = &environment.memory_pool;
    let sorts = ["a", "b"].map(|name| MemoryConsumer::new(name).with_can_spill(true).register(pool));
    for sort in &sorts {
        while sort.try_grow(1 << 20).is_ok() {}
    }
    let merge = MemoryConsumer::new("merge").register(pool);
    assert!(merge.try_grow(engine.sort_pool / 2).is_ok(), "sorts took all memory");
}

#[test]
fn a_limit_that_is_too_small_is_refused_with_the_least() {
    let bytes = 20 << 20;
    let engine = |limit: u64| Engine::new(8, limit << 20).unwrap();
    let refused = engine(96).require(bytes).unwrap_err().to_string();
    let least = refused.split_whitespace().rev().nth(1).and_then(|least| least.parse().ok());
    let least: u64 = least.expect("the error ends with the least limit");
    assert!(engine(least).require(bytes).is_ok() && engine(least - 1).require(bytes).is_err(), "{refused}");
    assert_eq!((engine(least).tasks(bytes), engine(4 << 10).tasks(bytes)), (1, 8));
}

#[test]
fn a_readers_error_is_passed_through() {
    let open: OpenReader = Arc::new(|| {
        let good = Ok(batch(&[("a".to_owned(), 1)]));
        Ok(Box::new([good, Err(Error::place("file", "damaged", "restore it"))].into_iter()) as BatchIterator)
    });
    for sorted in [false, true] {
        let engine = Engine::new(2, 64 << 20).unwrap();
        let mut plan = engine.scan(&schema(), vec![open.clone()]).unwrap();
        if sorted {
            plan = engine.sort(plan, &["name"]).unwrap();
        }
        let error = engine.batches(&plan, 0).unwrap().find_map(Result::err).unwrap();
        assert_eq!((error.to_string().as_str(), error.remedy()), ("file: damaged", Some("restore it")));
    }
}

#[test]
fn a_reader_stops_when_its_receiver_is_dropped() {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    let open: OpenReader = Arc::new(move || {
        let counted = counted.clone();
        Ok(Box::new((0..).map(move |row| {
            counted.fetch_add(1, Ordering::SeqCst);
            Ok(batch(&[("a".to_owned(), row)]))
        })) as BatchIterator)
    });
    let engine = Engine::new(1, 64 << 20).unwrap();
    let plan = engine.scan(&schema(), vec![open]).unwrap();
    let mut batches = engine.batches(&plan, 0).unwrap();
    assert!(batches.next().is_some());
    drop(batches);
    drop(engine); // joins its threads
    assert!(count.load(Ordering::SeqCst) < 10);
}
