//! Reads single messages of every kind, as the processes of a cluster do when they receive them. Fuzzing calls it.

use super::codec::read_request;
use super::registry::RegisteredJob;
use super::task::{Reply, Task};
use planetree_base::compact::{self, Bytes};
use planetree_base::error::Result;

/// Reads a message of the given kind. A malformed message is an error.
#[doc(hidden)]
pub fn read_message(kind: u8, bytes: &[u8]) -> Result<()> {
    let (one, other) = bytes.split_at(bytes.len() / 2);
    let job = RegisteredJob::at(usize::from(kind) / 5);
    match kind % 5 {
        0 => Task::from_bytes(bytes).map(drop),
        1 => read_request(bytes).and_then(|request| Task::from_bytes(&request.task)).map(drop),
        2 => compact::from_bytes::<Reply>(bytes).map(drop),
        3 => (job.read)(bytes, bytes),
        _ => (job.merge)(&[Bytes(one.to_vec()), Bytes(other.to_vec())]).map(drop),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn messages_of_random_bytes_are_refused_without_a_panic(
            kind in any::<u8>(), bytes in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            let _ = read_message(kind, &bytes);
        }
    }
}
