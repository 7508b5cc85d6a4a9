//! Finding documents of one query by their names. A small table of hashes that is not cleared between
//! queries but marked with the query's number, so that a query costs by its documents alone.

use arrow::array::StringArray;
use xxhash_rust::xxh3::xxh3_64;

/// See the module.
#[derive(Default)]
pub struct DocumentTable {
    slots: Vec<Slot>,
    /// Which query the slots in use are of.
    query: u64,
}

#[derive(Clone, Copy, Default)]
struct Slot {
    query: u64,
    hash: u64,
    row: usize,
}

impl DocumentTable {
    /// Forgets everything and makes room for a number of documents.
    pub fn clear(&mut self, documents: usize) {
        self.query += 1;
        let room = (2 * documents).next_power_of_two().max(64);
        if self.slots.len() < room {
            self.slots = vec![Slot::default(); room];
        }
    }

    /// Puts in the document of a row; the row that has the same document, if there is one already.
    pub fn insert(&mut self, names: &StringArray, row: usize) -> Option<usize> {
        let name = names.value(row);
        let hash = xxh3_64(name.as_bytes());
        match self.find(names, name, hash) {
            Ok(other) => Some(other),
            Err(free) => {
                self.slots[free] = Slot { query: self.query, hash, row };
                None
            }
        }
    }

    /// The row that has a document.
    pub fn get(&self, names: &StringArray, name: &str) -> Option<usize> {
        self.find(names, name, xxh3_64(name.as_bytes())).ok()
    }

    /// The row of a name, or the slot where it would go.
    fn find(&self, names: &StringArray, name: &str, hash: u64) -> Result<usize, usize> {
        let mask = self.slots.len() - 1;
        let mut place = hash as usize & mask;
        loop {
            let slot = &self.slots[place];
            if slot.query != self.query {
                return Err(place);
            }
            if slot.hash == hash && names.value(slot.row) == name {
                return Ok(slot.row);
            }
            place = (place + 1) & mask;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    proptest! {
        #[test]
        fn it_finds_what_a_map_finds(
            queries in proptest::collection::vec(proptest::collection::vec("[a-c]{0,3}", 0..90), 1..6),
        ) {
            let mut table = DocumentTable::default();
            for query in queries {
                let names = StringArray::from(query.clone());
                let mut map = HashMap::new();
                table.clear(query.len());
                for (row, name) in query.iter().enumerate() {
                    let before = map.get(name).copied();
                    map.entry(name.clone()).or_insert(row);
                    prop_assert_eq!(table.insert(&names, row), before);
                }
                for name in ["", "a", "abc", "bb", "zebra"] {
                    prop_assert_eq!(table.get(&names, name), map.get(name).copied());
                }
            }
        }
    }
}
