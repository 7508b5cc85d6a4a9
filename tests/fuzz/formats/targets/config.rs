//! Training parameters in TOML. A plan that is accepted can be written and read again.
#![no_main]

use planetree_fuzz_formats::{file, start};
use planetree_train::config::{TrainingPlan, load};

libfuzzer_sys::fuzz_target!(init: start(), |text: &str| {
    if let Ok(plan) = load(None, Some(&file(text.as_bytes())), &[]) {
        let written = plan.to_toml();
        let again = TrainingPlan::from_toml(&written).map(|plan| plan.to_toml());
        assert_eq!(again.ok(), Some(written));
    }
});
