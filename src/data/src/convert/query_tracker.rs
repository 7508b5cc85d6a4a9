//! Detects queries whose rows are not consecutive. About a million queries are tracked in memory. If there are more
//! queries, they are written to temporary files as sorted runs, and repetitions across runs are detected at the end,
//! before the dataset is published.

use crate::dataset::InputLine;
use planetree_base::error::{Error, InputError, Position, Result};
use std::collections::HashMap;
use std::fs::File;
use std::hash::{BuildHasherDefault, Hasher};
use std::io::{BufReader, BufWriter, Read, Seek, Write};
use xxhash_rust::xxh3::xxh3_128;

/// Maximum number of queries in memory, which need about 64 MiB.
const MAX_IN_MEMORY: usize = 1 << 20;

/// Tracks which queries have started, and where.
pub(super) struct QueryTracker {
    inputs: Vec<String>,
    max_in_memory: usize,
    seen: HashMap<u128, InputLine, BuildHasherDefault<IdentityHasher>>,
    runs: Vec<File>,
}

/// A hasher for keys that already are hashes, so that they are not hashed again.
#[derive(Default)]
struct IdentityHasher(u64);

impl Hasher for IdentityHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u128(&mut self, key: u128) {
        self.0 = key as u64;
    }
}

impl QueryTracker {
    /// Creates an empty tracker. `inputs` are the names of the inputs, for messages.
    pub(super) fn new(inputs: Vec<String>) -> Self {
        QueryTracker { inputs, max_in_memory: MAX_IN_MEMORY, seen: HashMap::default(), runs: Vec::new() }
    }

    /// Checks whether no query has started yet.
    pub(super) fn is_empty(&self) -> bool {
        self.seen.is_empty() && self.runs.is_empty()
    }

    /// Returns the name of the first input, for messages.
    pub(crate) fn first_input(&self) -> &str {
        self.inputs.first().map_or("input", String::as_str)
    }

    /// Records the start of a query. Fails if an earlier start of the same query is still in memory.
    /// [`QueryTracker::finish`] detects all other repetitions.
    pub(super) fn begin(&mut self, name: &str, place: InputLine) -> Result<()> {
        if let Some(first) = self.seen.insert(xxh3_128(name.as_bytes()), place) {
            return Err(self.repeated_query(&format!("query {name:?}"), first, place));
        }
        if self.seen.len() >= self.max_in_memory {
            self.spill().map_err(|error| Error::io("temporary file", "write", error))?;
        }
        Ok(())
    }

    fn repeated_query(&self, query: &str, first: InputLine, second: InputLine) -> Error {
        let file = |place: InputLine| self.inputs[place.input as usize].clone();
        Error::Input(Box::new(InputError {
            at: Position { file: file(second), line: second.line, column: 1 },
            problem: format!(
                "found {query} again, expected all its rows to be consecutive: the first one is at {}:{}",
                file(first),
                first.line
            ),
            remedy: "sort the input by query, or pass --sort-queries to sort it during the conversion"
                .to_owned(),
        }))
    }

    fn sorted(&mut self) -> Vec<(u128, InputLine)> {
        let mut entries: Vec<(u128, InputLine)> = self.seen.drain().collect();
        entries.sort_unstable_by_key(|(hash, place)| (*hash, place.input, place.line));
        entries
    }

    fn spill(&mut self) -> std::io::Result<()> {
        let entries = self.sorted();
        let mut file = BufWriter::new(tempfile::tempfile()?);
        for (hash, place) in entries {
            file.write_all(&hash.to_le_bytes())?;
            file.write_all(&place.input.to_le_bytes())?;
            file.write_all(&place.line.to_le_bytes())?;
        }
        let mut file = file.into_inner()?;
        file.rewind()?;
        self.runs.push(file);
        Ok(())
    }

    /// Performs the final check: fails if a query occurs in two of the sorted runs.
    pub(super) fn finish(mut self) -> Result<()> {
        if self.runs.is_empty() {
            return Ok(());
        }
        let in_memory = self.sorted();
        let files = std::mem::take(&mut self.runs);
        match first_repetition(files, in_memory)
            .map_err(|error| Error::io("temporary file", "read", error))?
        {
            Some((first, second)) => Err(self.repeated_query("the query of this line", first, second)),
            None => Ok(()),
        }
    }
}

type SortedRun = Box<dyn Iterator<Item = std::io::Result<(u128, InputLine)>>>;

/// Merges the sorted runs and finds repeated queries. Returns the first and second occurrence of the query whose
/// second occurrence comes first in the input.
fn first_repetition(
    files: Vec<File>,
    in_memory: Vec<(u128, InputLine)>,
) -> std::io::Result<Option<(InputLine, InputLine)>> {
    let mut runs: Vec<SortedRun> =
        files.into_iter().map(|file| Box::new(HashRun(BufReader::new(file))) as _).collect();
    runs.push(Box::new(in_memory.into_iter().map(Ok)));
    let mut heads = Vec::new();
    for run in &mut runs {
        heads.push(run.next().transpose()?);
    }
    let order = |place: &InputLine| (place.input, place.line);
    let mut last: Option<(u128, InputLine)> = None;
    let mut earliest: Option<(InputLine, InputLine)> = None;
    loop {
        let least = (0..heads.len())
            .filter(|run| heads[*run].is_some())
            .min_by_key(|run| heads[*run].map(|(hash, place)| (hash, order(&place))));
        let Some(run) = least else { return Ok(earliest) };
        let entry = std::mem::replace(&mut heads[run], runs[run].next().transpose()?);
        if let (Some((last_hash, first)), Some((hash, second))) = (last, entry)
            && last_hash == hash
            && earliest.is_none_or(|(_, known)| order(&second) < order(&known))
        {
            earliest = Some((first, second));
        }
        last = entry;
    }
}

struct HashRun(BufReader<File>);

impl Iterator for HashRun {
    type Item = std::io::Result<(u128, InputLine)>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut entry = [0; 28];
        match self.0.read_exact(&mut entry) {
            Ok(()) => {
                let (hash, rest) = entry.split_at(16);
                let (input, line) = rest.split_at(4);
                let parse = || {
                    Some((
                        u128::from_le_bytes(hash.try_into().ok()?),
                        InputLine {
                            input: u32::from_le_bytes(input.try_into().ok()?),
                            line: u64::from_le_bytes(line.try_into().ok()?),
                        },
                    ))
                };
                parse().map(Ok)
            }
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => None,
            Err(error) => Some(Err(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(max_in_memory: usize, names: &[&str]) -> Option<String> {
        let mut tracker = QueryTracker { max_in_memory, ..QueryTracker::new(vec!["a.txt".into()]) };
        for (line, name) in names.iter().enumerate() {
            if let Err(error) = tracker.begin(name, InputLine { input: 0, line: line as u64 + 1 }) {
                return Some(error.to_string());
            }
        }
        tracker.finish().err().map(|error| error.to_string())
    }

    #[test]
    fn repeated_queries_are_found_in_memory_and_on_disk() {
        let names = ["p", "q", "r", "s", "t", "q", "u", "p"];
        assert_eq!(run(100, &["a", "b", "c"]), None);
        assert_eq!(run(2, &["a", "b", "c", "d", "e"]), None);
        assert_eq!(
            run(100, &names).unwrap(),
            "a.txt:6:1: found query \"q\" again, expected all its rows to be consecutive: the first one is at a.txt:2"
        );
        for max_in_memory in 1..4 {
            let found = run(max_in_memory, &names).unwrap();
            assert!(
                found.starts_with("a.txt:6:1: ") && found.ends_with("the first one is at a.txt:2"),
                "{max_in_memory}: {found}"
            );
        }
    }
}
