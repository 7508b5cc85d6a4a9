//! CSV and other delimited text.
#![no_main]

use planetree_data::ingest::InputFormat;
use planetree_fuzz_formats::{ingest, start};

libfuzzer_sys::fuzz_target!(init: start(), |bytes: &[u8]| ingest(InputFormat::Csv, bytes));
