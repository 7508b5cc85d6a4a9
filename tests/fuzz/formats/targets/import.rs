//! Model files of other programs. The first byte chooses the format. A model that is accepted can score.
#![no_main]

use planetree_fuzz_formats::{file, start};
use planetree_model::exchange::{MODEL_FORMATS, NameSource, import};
use planetree_model::predict::Scorer;

libfuzzer_sys::fuzz_target!(init: start(), |bytes: &[u8]| {
    let Some((choice, bytes)) = bytes.split_first() else { return };
    let mut formats = MODEL_FORMATS.iter().filter(|format| format.import.is_some());
    let count = formats.clone().count();
    let format = formats.nth(usize::from(*choice) % count);
    let Ok(imported) = import(&file(bytes), format, &NameSource::Model { first: 1 }) else { return };
    let model = imported.model;
    if model.features.len() < 10_000 && let Ok(scorer) = Scorer::new(&model) {
        scorer.score(&vec![f32::NAN; model.features.len()], &mut [0.0]);
    }
});
