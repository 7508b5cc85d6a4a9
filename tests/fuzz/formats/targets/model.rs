//! Model files, with a checksum that fits. A model that is accepted can score.
#![no_main]

use planetree_base::storage::digest_of;
use planetree_fuzz_formats::start;
use planetree_model::model::Model;
use planetree_model::predict::Scorer;

libfuzzer_sys::fuzz_target!(init: start(), |bytes: &[u8]| {
    let mut bytes = bytes.to_vec();
    let key = b"planetree.xxh3\x18\x20";
    let place = bytes.windows(key.len()).rposition(|window| window == key).map(|place| place + key.len());
    if let Some(place) = place.filter(|place| place + 32 <= bytes.len()) {
        bytes[place..place + 32].fill(b'0');
        let digest = digest_of(&bytes).to_string();
        bytes[place..place + 32].copy_from_slice(digest.as_bytes());
    }
    let Ok(model) = Model::from_bytes(&bytes) else { return };
    if model.features.len() < 10_000 && let Ok(scorer) = Scorer::new(&model) {
        scorer.score(&vec![f32::NAN; model.features.len()], &mut [0.0]);
    }
});
