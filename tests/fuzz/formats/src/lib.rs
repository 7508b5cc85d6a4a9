//! What the targets share.

use planetree_base::panics::print_only_unguarded;
use planetree_base::storage::Location;
use planetree_data::ingest::{Ingest, IngestOptions, Input, InputFormat};
use planetree_data::rows::BlockBuilder;
use std::cell::RefCell;
use std::fs;
use std::path::PathBuf;

/// Panics that the program catches by a guard are no findings; all others end the process.
pub fn start() {
    print_only_unguarded();
}

/// Writes a file for readers that need one, in memory if possible. It is overwritten by the next call.
pub fn file(bytes: &[u8]) -> Location {
    thread_local! {
        static PATH: RefCell<Option<PathBuf>> = const { RefCell::new(None) };
    }
    PATH.with_borrow_mut(|path| {
        let path = path.get_or_insert_with(|| {
            let memory = PathBuf::from("/dev/shm");
            let folder = if memory.is_dir() { memory } else { std::env::temp_dir() };
            folder.join(format!("planetree-fuzz-{}", std::process::id()))
        });
        fs::write(&*path, bytes).expect("a file for the input");
        Location::Local(path.clone())
    })
}

/// Reads an input as `convert` does. The first byte chooses options.
pub fn ingest(format: InputFormat, bytes: &[u8]) {
    let Some((choice, bytes)) = bytes.split_first() else { return };
    let options = IngestOptions {
        format: Some(format),
        lenient: choice & 1 != 0,
        header: choice & 2 == 0,
        decimal_comma: choice & 4 != 0,
        chunk_bytes: if choice & 8 == 0 { 1 << 20 } else { 64 },
        memory_limit: 256 << 20,
        ..IngestOptions::default()
    };
    let Ok(ingest) = Ingest::open(vec![Input::at(file(bytes))], options) else { return };
    let mut builder = BlockBuilder::default();
    let _ = ingest.run(&mut |task, _| {
        task.decode(&mut builder)?;
        builder.finish();
        Ok(())
    });
}
