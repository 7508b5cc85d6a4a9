//! Single Parquet files of ours: models, predictions, rounds. Each carries the checksum of all its bytes.
