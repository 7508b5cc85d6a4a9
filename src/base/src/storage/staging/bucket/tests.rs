//! Tests of outputs in an object store: replaced, killed and concurrent runs.

use super::*;
use crate::storage::staging::Staging;
use object_store::memory::InMemory;

fn bucket() -> (Arc<InMemory>, Location) {
    let store = Arc::new(InMemory::new());
    (store.clone(), Location::in_memory(&store, "out"))
}

fn begin(target: &Location, grace: Duration) -> BucketStaging {
    match Staging::begin(target, "_marker.json", true).unwrap() {
        Staging::Bucket(mut bucket) => {
            bucket.history.grace = grace;
            bucket
        }
        Staging::Local(_) => unreachable!("it is in a bucket"),
    }
}

fn keep(staging: &mut BucketStaging, name: &str) {
    let mut spool = SpooledTempFile::new(100);
    spool.write_all(name.as_bytes()).unwrap();
    staging.keep(spool, name).unwrap();
}

/// Writes an output that consists of the files `names` and a marker that lists these files.
fn write(target: &Location, names: &str, grace: Duration) {
    let mut staging = begin(target, grace);
    names.split(' ').for_each(|name| keep(&mut staging, name));
    staging.commit(names.as_bytes()).unwrap();
}

/// Returns the names of all objects except saved copies of markers, and the number of saved copies.
fn there(target: &Location) -> (String, usize) {
    let names = target.list().unwrap();
    let (notes, names): (Vec<_>, Vec<_>) = names.into_iter().partition(|name| name.starts_with("_marker-"));
    (names.join(" "), notes.len())
}

const DAY: Duration = GRACE;
const NOTHING: Duration = Duration::ZERO;

#[test]
fn what_is_replaced_stays_for_its_readers_and_goes_later() {
    let (_, target) = bucket();
    write(&target, "a b", DAY);
    assert_eq!(there(&target), ("_marker.json a b".to_owned(), 0));
    write(&target, "b c", DAY);
    assert_eq!(there(&target), ("_marker.json a b c".to_owned(), 1));
    // Writing the first content again makes it current again, and the second output is the replaced one.
    write(&target, "a b", DAY);
    assert_eq!(there(&target), ("_marker.json a b c".to_owned(), 1));
    write(&target, "d", NOTHING);
    assert_eq!(there(&target), ("_marker.json d".to_owned(), 0));
    write(&target, "d", NOTHING);
    assert_eq!(there(&target), ("_marker.json d".to_owned(), 0));
}

#[test]
fn what_others_put_there_is_never_removed() {
    let (store, target) = bucket();
    for name in ["part-00000-0123456789abcdef.parquet", "_marker-notes.json", "thesis.tex"] {
        let path = Path::from(format!("out/{name}"));
        wait(store.put(&path, PutPayload::from("x"))).unwrap();
    }
    write(&target, "a", NOTHING);
    write(&target, "b", NOTHING);
    let expected = "_marker.json b part-00000-0123456789abcdef.parquet thesis.tex";
    assert_eq!(there(&target), (expected.to_owned(), 1));
}

#[test]
fn a_killed_run_leaves_the_old_output_and_a_later_one_cleans_up() {
    let (_, target) = bucket();
    write(&target, "a b", DAY);
    for dies_late in [false, true] {
        // Do everything that `commit` does before it writes the marker, and then stop without cleaning up.
        let mut staging = begin(&target, DAY);
        keep(&mut staging, "b");
        keep(&mut staging, "c");
        staging.settle().unwrap();
        let turn = staging.take_turn(None).unwrap();
        staging.history.note(b"b c").unwrap();
        staging.complete(0).unwrap();
        if dies_late {
            staging.history.note(b"a b").unwrap();
            staging.complete(1).unwrap();
        }
        drop(turn); // otherwise the next run would have to wait until this one is presumed dead
        std::mem::forget(staging);
        assert_eq!(&target.join("_marker.json").read_all().unwrap().unwrap()[..], b"a b");
    }
    write(&target, "a b", NOTHING);
    assert_eq!(there(&target), ("_marker.json a b".to_owned(), 0));
}

#[test]
fn a_file_that_is_visible_early_is_gone_in_the_end() {
    let (_, target) = bucket();
    for commits in [true, false] {
        let mut staging = begin(&target, DAY);
        keep(&mut staging, "narrow");
        staging.reopen("narrow").unwrap();
        staging.discard("narrow");
        keep(&mut staging, "wide");
        if commits {
            staging.commit(b"wide").unwrap();
        } else {
            drop(staging);
        }
        assert_eq!(there(&target), ("_marker.json wide".to_owned(), 0));
    }
}

#[test]
fn a_marker_that_changes_in_between_is_not_lost() {
    let (store, target) = bucket();
    write(&target, "a", DAY);
    let staging = begin(&target, DAY);
    let (_, version) = read_version(&staging.store, &staging.marker_path()).unwrap().unwrap();
    write(&target, "b", DAY);
    assert!(!staging.put_marker(b"c", Some(version)).unwrap(), "it is not the one that was read");
    assert!(!staging.put_marker(b"c", None).unwrap(), "there is one");
    drop(staging);
    let marker = wait(async { store.get(&Path::from("out/_marker.json")).await.unwrap().bytes().await });
    assert_eq!(&marker.unwrap()[..], b"b");
}

#[test]
fn writers_that_race_leave_an_output_with_all_its_files() {
    let (_, target) = bucket();
    for _ in 0..20 {
        std::thread::scope(|scope| {
            for names in ["a b", "b c", "a b", "c d"] {
                let target = &target;
                scope.spawn(move || write(target, names, NOTHING));
            }
        });
        let marker = target.join("_marker.json").read_all().unwrap().unwrap();
        let named = String::from_utf8(marker.to_vec()).unwrap();
        for name in named.split(' ') {
            assert!(target.join(name).size().unwrap().is_some(), "{name} of {named:?} is gone");
        }
    }
}
