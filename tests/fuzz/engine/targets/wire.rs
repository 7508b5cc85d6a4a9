//! Messages between the processes of a cluster. The first byte chooses the kind.
#![no_main]

use planetree_base::panics::print_only_unguarded;

libfuzzer_sys::fuzz_target!(init: print_only_unguarded(), |bytes: &[u8]| {
    if let Some((kind, bytes)) = bytes.split_first() {
        let _ = planetree_cluster::read_message(*kind, bytes);
    }
});
