//! Which queries have begun, so that one that appears again after a gap is noticed. A few million
//! queries are kept in memory; beyond that the ledger goes to a temporary file in sorted runs, and
//! what memory did not notice is found at the end, before anything is published.

use crate::dataset::Place;
use planetree_base::error::{Error, InputError, Position, Result};
use std::collections::HashMap;
use std::fs::File;
use std::hash::{BuildHasherDefault, Hasher};
use std::io::{BufReader, BufWriter, Read, Seek, Write};
use xxhash_rust::xxh3::xxh3_128;

/// Entries kept in memory: about 64 MiB.
const IN_MEMORY: usize = 1 << 20;

/// See the module.
pub struct Ledger {
    inputs: Vec<String>,
    most: usize,
    seen: HashMap<u128, Place, BuildHasherDefault<AlreadyHashed>>,
    runs: Vec<File>,
}

/// The keys are hashes already.
#[derive(Default)]
struct AlreadyHashed(u64);

impl Hasher for AlreadyHashed {
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

impl Ledger {
    /// An empty ledger; the names of the inputs are for messages.
    pub fn new(inputs: Vec<String>) -> Self {
        Ledger { inputs, most: IN_MEMORY, seen: HashMap::default(), runs: Vec::new() }
    }

    /// Whether no query has begun.
    pub fn is_empty(&self) -> bool {
        self.seen.is_empty() && self.runs.is_empty()
    }

    /// The name of the first input.
    pub fn first_input(&self) -> &str {
        self.inputs.first().map_or("input", String::as_str)
    }

    /// Notes that a query begins; an error if it began before.
    pub fn begin(&mut self, name: &str, place: Place) -> Result<()> {
        if let Some(first) = self.seen.insert(xxh3_128(name.as_bytes()), place) {
            return Err(self.again(&format!("query {name:?}"), first, place));
        }
        if self.seen.len() >= self.most {
            self.spill().map_err(|error| Error::io("temporary file", "write", &error))?;
        }
        Ok(())
    }

    fn again(&self, query: &str, first: Place, second: Place) -> Error {
        let file = |place: Place| self.inputs[place.input as usize].clone();
        Error::Input(Box::new(InputError {
            at: Position { file: file(second), line: second.line, column: 1 },
            problem: format!(
                "found {query} again, expected its rows together: they began at {}:{}",
                file(first),
                first.line
            ),
            remedy: "sort the input by query, or pass --sort-queries to gather the rows of each query"
                .to_owned(),
        }))
    }

    fn sorted(&mut self) -> Vec<(u128, Place)> {
        let mut entries: Vec<(u128, Place)> = self.seen.drain().collect();
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

    /// The last check: no query is in two runs.
    pub fn finish(mut self) -> Result<()> {
        if self.runs.is_empty() {
            return Ok(());
        }
        let in_memory = self.sorted();
        let files = std::mem::take(&mut self.runs);
        match repeated(files, in_memory).map_err(|error| Error::io("temporary file", "read", &error))? {
            Some((first, second)) => Err(self.again("the query of this line", first, second)),
            None => Ok(()),
        }
    }
}

type Entries = Box<dyn Iterator<Item = std::io::Result<(u128, Place)>>>;

/// Merges sorted runs; of the hashes that are in two of them, the one met again first.
fn repeated(files: Vec<File>, in_memory: Vec<(u128, Place)>) -> std::io::Result<Option<(Place, Place)>> {
    let mut runs: Vec<Entries> =
        files.into_iter().map(|file| Box::new(RunReader(BufReader::new(file))) as _).collect();
    runs.push(Box::new(in_memory.into_iter().map(Ok)));
    let mut heads = Vec::new();
    for run in &mut runs {
        heads.push(run.next().transpose()?);
    }
    let order = |place: &Place| (place.input, place.line);
    let mut last: Option<(u128, Place)> = None;
    let mut worst: Option<(Place, Place)> = None;
    loop {
        let least = (0..heads.len())
            .filter(|run| heads[*run].is_some())
            .min_by_key(|run| heads[*run].map(|(hash, place)| (hash, order(&place))));
        let Some(run) = least else { return Ok(worst) };
        let entry = std::mem::replace(&mut heads[run], runs[run].next().transpose()?);
        if let (Some((last_hash, first)), Some((hash, second))) = (last, entry)
            && last_hash == hash
            && worst.is_none_or(|(_, known)| order(&second) < order(&known))
        {
            worst = Some((first, second));
        }
        last = entry;
    }
}

struct RunReader(BufReader<File>);

impl Iterator for RunReader {
    type Item = std::io::Result<(u128, Place)>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut entry = [0; 28];
        match self.0.read_exact(&mut entry) {
            Ok(()) => {
                let (hash, rest) = entry.split_at(16);
                let (input, line) = rest.split_at(4);
                let parse = || {
                    Some((
                        u128::from_le_bytes(hash.try_into().ok()?),
                        Place {
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

    fn run(most: usize, names: &[&str]) -> Option<String> {
        let mut ledger = Ledger { most, ..Ledger::new(vec!["a.txt".into()]) };
        for (line, name) in names.iter().enumerate() {
            if let Err(error) = ledger.begin(name, Place { input: 0, line: line as u64 + 1 }) {
                return Some(error.to_string());
            }
        }
        ledger.finish().err().map(|error| error.to_string())
    }

    #[test]
    fn a_query_that_returns_is_found_in_memory_and_on_disk() {
        let names = ["p", "q", "r", "s", "t", "q", "u", "p"];
        assert_eq!(run(100, &["a", "b", "c"]), None);
        assert_eq!(run(2, &["a", "b", "c", "d", "e"]), None);
        assert_eq!(
            run(100, &names).unwrap(),
            "a.txt:6:1: found query \"q\" again, expected its rows together: they began at a.txt:2"
        );
        for most in 1..4 {
            let found = run(most, &names).unwrap();
            assert!(
                found.starts_with("a.txt:6:1: ") && found.ends_with("began at a.txt:2"),
                "{most}: {found}"
            );
        }
    }
}
