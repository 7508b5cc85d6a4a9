//! Looks up the documents of one query by id. The hash table is reused for all queries and not cleared between them.
//! Instead, every slot stores the number of the query that filled it, so that the time for a query depends only on
//! the number of its documents.

use arrow::array::StringArray;
use xxhash_rust::xxh3::xxh3_64;

/// A hash table from the document ids of one query to their rows.
#[derive(Default)]
pub struct DocumentTable {
    slots: Vec<Slot>,
    /// Number of the current query. Slots that other queries filled count as free.
    query: u64,
}

#[derive(Clone, Copy, Default)]
struct Slot {
    query: u64,
    hash: u64,
    row: usize,
}

impl DocumentTable {
    /// Starts a new query with up to `documents` documents.
    pub fn clear(&mut self, documents: usize) {
        self.query += 1;
        let slots = (2 * documents).next_power_of_two().max(64);
        if self.slots.len() < slots {
            self.slots = vec![Slot::default(); slots];
        }
    }

    /// Inserts the document in a row. If an earlier row has the same document, returns that row and inserts nothing.
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

    /// Returns the row of a document; `None` if the current query does not have the document.
    pub fn get(&self, names: &StringArray, name: &str) -> Option<usize> {
        self.find(names, name, xxh3_64(name.as_bytes())).ok()
    }

    /// Returns the row of a document id. If there is none, returns the index of a free slot for the id as the error.
    fn find(&self, names: &StringArray, name: &str, hash: u64) -> Result<usize, usize> {
        let mask = self.slots.len() - 1;
        let mut index = hash as usize & mask;
        loop {
            let slot = &self.slots[index];
            if slot.query != self.query {
                return Err(index);
            }
            if slot.hash == hash && names.value(slot.row) == name {
                return Ok(slot.row);
            }
            index = (index + 1) & mask;
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
        fn lookups_match_a_hash_map(
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
