//! Clusters on this machine: a scheduler and executors, each a process of its own.

use crate::learning::*;
use crate::s3;
use crate::support::*;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// A scheduler and its executors, which end with the test.
pub struct Cluster {
    _scheduler: Server,
    pub executors: Vec<Child>,
    port: u16,
    folder: tempfile::TempDir,
    environment: Vec<(String, String)>,
    /// Of scheduler and executors.
    options: String,
}

impl Cluster {
    pub fn start(executors: usize, environment: &[(String, String)]) -> Self {
        Self::start_with(executors, environment, "")
    }

    pub fn start_with(executors: usize, environment: &[(String, String)], options: &str) -> Self {
        let (port, folder) = (free_port(), room());
        let scheduler = command(folder.path(), &format!("--quiet scheduler --port {port} {options}"));
        let mut cluster = Cluster {
            _scheduler: Server::start(scheduler, port),
            executors: Vec::new(),
            port,
            folder,
            environment: environment.to_vec(),
            options: options.to_owned(),
        };
        (0..executors).for_each(|_| cluster.add_executor());
        // A training takes those executors for its shares that have reported when it begins.
        std::thread::sleep(Duration::from_secs(2));
        cluster
    }

    /// Each works in a folder of its own, which nobody else sees.
    fn add_executor(&mut self) {
        let number = self.executors.len();
        let folder = self.folder.path().join(format!("executor{number}"));
        fs::create_dir(&folder).unwrap();
        fs::create_dir(folder.join("work")).unwrap();
        let arguments =
            format!("--quiet executor --scheduler 127.0.0.1:{} --threads 1 --work-dir work", self.port);
        let mut command = command(&folder, &format!("{arguments} {}", self.options));
        command.envs(self.environment.iter().cloned());
        self.executors.push(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    }

    /// How many jobs an executor has results of.
    pub fn jobs_of(&self, executor: usize) -> usize {
        let folder = self.folder.path().join(format!("executor{executor}/work"));
        fs::read_dir(folder).unwrap().count()
    }

    /// The stages of jobs that an executor has results of.
    fn stages_of(&self, executor: usize) -> BTreeSet<usize> {
        let folder = self.folder.path().join(format!("executor{executor}/work"));
        let jobs = fs::read_dir(folder).unwrap();
        let stages = jobs.flat_map(|job| fs::read_dir(job.unwrap().path()).unwrap());
        stages.map(|stage| stage.unwrap().file_name().to_string_lossy().parse().unwrap()).collect()
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn url(&self) -> String {
        format!("df://127.0.0.1:{}", self.port)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for executor in &mut self.executors {
            let _ = executor.kill();
            let _ = executor.wait();
        }
    }
}

fn model(directory: &Path, arguments: &str) -> Vec<u8> {
    let rate = if arguments.contains("--preset rf-") { "" } else { "--set learning_rate=0.3" };
    train(directory, &format!("--set num_trees=5 {rate} {arguments} --model m"));
    fs::read(directory.join("m")).unwrap()
}

#[test]
fn a_cluster_trains_the_same_bytes_and_log() {
    let room = room();
    let examples = graded(21, 120, 25);
    dataset(room.path(), "data", &examples, "--partition-rows 300");
    fs::write(room.path().join("rows.csv"), as_csv(&examples)).unwrap();
    run(room.path(), "convert rows.csv --output weighted --partition-rows 300").ok();
    dataset(room.path(), "vali", &graded(22, 40, 15), "--partition-rows 100");
    let cluster = Cluster::start(2, &[]);
    for way in [
        "--preset planet --data data",
        "--preset planet --data weighted --set missing=learned --set bagging_fraction=0.7 --set feature_fraction=0.8",
        "--preset planet --data data --set query_fraction=0.5 --set features_per_node=3 --set num_leaves=9 --set max_depth=-1",
        "--preset planet --data data --set max_bin=12",
        "--preset lambdamart --data data",
        "--preset lambdamart --data weighted --set max_depth=3 --set num_leaves=0",
        "--preset xendcg --data data --set query_fraction=0.6",
        "--preset pgbrt --data data",
        "--preset rf-point --data data",
        "--preset rf-list --data data",
        "--preset rf-hybrid --data weighted",
    ] {
        let outcome = |cluster: &str| {
            let model = model(room.path(), &format!("{way} {cluster} --valid vali --rounds rounds"));
            (model, rounds_of(&room.path().join("rounds")))
        };
        let (expected, log) = outcome("--threads 2");
        let (trained, its_log) = outcome(&format!("--cluster {}", cluster.url()));
        assert!(trained == expected, "{way}");
        assert_eq!(its_log, log, "{way}");
    }
    // More shares than executors, and as many as there are partitions.
    let expected = model(room.path(), "--data data");
    for shares in [1, 3, 99] {
        let trained = model(room.path(), &format!("--data data --cluster {}?shares={shares}", cluster.url()));
        assert!(trained == expected, "{shares} shares");
    }
}

#[test]
fn histograms_may_be_merged_by_executors_and_asked_for_in_parts() {
    let room = room();
    let examples = graded(23, 120, 25);
    dataset(room.path(), "data", &examples, "--partition-rows 200");
    fs::write(room.path().join("rows.csv"), as_csv(&examples)).unwrap();
    run(room.path(), "convert rows.csv --output weighted --partition-rows 200").ok();
    let bytes_per_level = |arguments: &str, expected: &[u8]| {
        let trained = model(room.path(), &format!("{arguments} --stats stats.json"));
        assert!(trained == expected, "{arguments}");
        let stats: serde_json::Value =
            serde_json::from_slice(&fs::read(room.path().join("stats.json")).unwrap()).unwrap();
        let cluster = &stats["cluster"];
        assert_eq!(cluster["rebuilt"], 0, "no share moves: {arguments}: {cluster}");
        cluster["level_bytes_p50"].as_f64().unwrap()
    };
    let cluster = Cluster::start(2, &[]);
    for way in
        ["--preset planet --data weighted", "--preset lambdamart --data data", "--preset pgbrt --data data"]
    {
        let expected = model(room.path(), way);
        let bytes = ["shares=10&merge=0", "shares=10", "shares=10&merge=1&overlap=3", "merge=4&overlap=2"]
            .map(|usage| bytes_per_level(&format!("{way} --cluster {}?{usage}", cluster.url()), &expected));
        // Ten answers, or one of all of them: the fewer rows a node has, the fewer cells do they have in common.
        assert!(bytes[1..].iter().all(|merged| bytes[0] > 1.2 * merged), "{way}: {bytes:?}");
    }
    // The second stage of a job is the merging: both executors did it.
    for executor in 0..2 {
        assert!(cluster.stages_of(executor).contains(&2), "{:?}", cluster.stages_of(executor));
    }
}

/// The engine cuts the scans of large files as it likes, unless it is told not to.
#[test]
fn shares_of_large_files_stay_whole() {
    let room = room();
    run(room.path(), "sample --shape yahoo --rows 40000 --seed 5 --output text").ok();
    run(room.path(), "convert text/train.txt --output data --partition-rows 2000").ok();
    let files =
        fs::read_dir(room.path().join("data")).unwrap().map(|file| file.unwrap().metadata().unwrap().len());
    assert!(files.sum::<u64>() > 12 << 20, "the engine leaves less than 10 MiB alone");
    let arguments = "--preset planet --data data --set max_bin=15 --set max_depth=3";
    let expected = model(room.path(), arguments);
    for usage in ["shares=3", "shares=3&merge=2"] {
        assert!(model(room.path(), &format!("{arguments} --cluster local:2?{usage}")) == expected, "{usage}");
    }
}

#[test]
fn executors_of_this_machine_are_started_and_stopped() {
    let room = room();
    dataset(room.path(), "data", &graded(5, 60, 20), "--partition-rows 200");
    let expected = model(room.path(), "--preset lambdamart --data data");
    for executors in [1, 3] {
        let arguments =
            format!("--preset lambdamart --data data --cluster local:{executors} --stats stats.json");
        assert!(model(room.path(), &arguments) == expected, "{executors}");
        let stats: serde_json::Value =
            serde_json::from_slice(&fs::read(room.path().join("stats.json")).unwrap()).unwrap();
        let cluster = &stats["cluster"];
        assert!((50..=100).contains(&cluster["levels"].as_u64().unwrap()), "{cluster}");
        assert!(cluster["level_bytes_p50"].as_f64().unwrap() > 100.0, "{cluster}");
    }
}

#[test]
fn a_training_survives_the_loss_of_an_executor() {
    lose_an_executor("");
}

#[test]
fn a_training_survives_the_loss_of_an_executor_that_merges() {
    lose_an_executor("?shares=10&merge=3");
}

fn lose_an_executor(usage: &str) {
    let room = room();
    dataset(room.path(), "data", &graded(7, 200, 25), "--partition-rows 400");
    let arguments = "--data data --set num_trees=60 --model";
    train(room.path(), &format!("{arguments} expected"));
    let mut cluster = Cluster::start(2, &[]);
    let mut training = command(
        room.path(),
        &format!("train {arguments} m --cluster {}{usage} --stats stats.json --quiet", cluster.url()),
    )
    .spawn()
    .unwrap();
    std::thread::sleep(Duration::from_secs(3));
    assert!(training.try_wait().unwrap().is_none(), "it was still training");
    cluster.executors[1].kill().unwrap(); // SIGKILL
    let begun = Instant::now();
    cluster.add_executor();
    assert!(training.wait().unwrap().success());
    assert!(begun.elapsed() < Duration::from_secs(60));
    let same = |name: &str| fs::read(room.path().join(name)).unwrap();
    assert!(same("m") == same("expected"));
    let stats: serde_json::Value = serde_json::from_slice(&same("stats.json")).unwrap();
    assert!(stats["cluster"]["rebuilt"].as_u64().unwrap() > 0, "{stats}");
}

#[test]
fn a_stopped_training_goes_on_in_a_cluster() {
    let room = room();
    dataset(room.path(), "data", &graded(9, 60, 20), "--partition-rows 200");
    let cluster = Cluster::start(2, &[]);
    let with = format!("--preset lambdamart --data data --cluster {}", cluster.url());
    let forever = format!("--quiet train {with} --set num_trees=5000 --model m --checkpoint-every 2");
    let mut stopped = command(room.path(), &forever).spawn().unwrap();
    let checkpoint = room.path().join("m.checkpoint");
    let begun = Instant::now();
    while !checkpoint.exists() {
        assert!(begun.elapsed() < Duration::from_secs(60), "no checkpoint");
        std::thread::sleep(Duration::from_millis(5));
    }
    stopped.kill().unwrap();
    stopped.wait().unwrap();
    let trees = table_of(&checkpoint).column_by_name("tree").unwrap().clone();
    let last =
        arrow::compute::max(arrow::array::AsArray::as_primitive::<arrow::datatypes::Int32Type>(&trees));
    let trees = last.unwrap() + 1 + 2;
    train(room.path(), &format!("--preset lambdamart --data data --set num_trees={trees} --model expected"));
    train(room.path(), &format!("{with} --set num_trees={trees} --model m --resume"));
    assert!(!checkpoint.exists());
    assert!(fs::read(room.path().join("m")).unwrap() == fs::read(room.path().join("expected")).unwrap());
}

#[test]
fn a_dataset_in_an_object_store_needs_no_shared_disk() {
    let Some(server) = s3::moto() else { return };
    let environment = s3::environment(server.port);
    let room = room();
    dataset(room.path(), "data", &graded(5, 60, 20), "--partition-rows 200");
    let expected = model(room.path(), "--data data");
    run_with(room.path(), "convert data.txt --output s3://bucket/data --partition-rows 200", &environment)
        .ok();
    let cluster = Cluster::start(2, &environment);
    let arguments = format!(
        "--quiet train --set num_trees=5 --set learning_rate=0.3 --data s3://bucket/data --model m --cluster {}",
        cluster.url()
    );
    run_with(room.path(), &arguments, &environment).ok();
    assert!(fs::read(room.path().join("m")).unwrap() == expected);
    // Executors have credentials of their own, or none.
    let cluster = Cluster::start(2, &[]);
    let arguments = format!("train --data s3://bucket/data --model m --cluster {}", cluster.url());
    let ran = run_with(room.path(), &arguments, &environment).failed();
    assert!(ran.stderr.contains("executor ") && ran.stderr.contains("help: "), "{}", ran.stderr);
}

#[test]
fn faults_are_named_with_what_to_do() {
    let room = room();
    dataset(room.path(), "data", &graded(5, 20, 10), "");
    let fails = |arguments: &str, code: i32, words: &[&str]| {
        let ran = run(room.path(), arguments);
        assert_eq!(ran.code, code, "{arguments}: {}", ran.stderr);
        for word in words {
            assert!(ran.stderr.contains(word), "{arguments}: {word}: {}", ran.stderr);
        }
        assert!(!ran.stderr.contains("panicked"), "{}", ran.stderr);
    };
    let nobody = free_port();
    let train = |rest: &str| format!("train --data data --model m {rest}");
    fails(&train(&format!("--cluster df://127.0.0.1:{nobody}")), 1, &["no scheduler", "planetree scheduler"]);
    fails(&train("--cluster df://10.99.99.99:1"), 1, &["data: executors cannot read a local path", "s3://"]);
    fails(&train("--cluster local:0"), 2, &["local:0", "local:2"]);
    fails(&train("--cluster http://host"), 2, &["df://host:port"]);
    fails(&train("--cluster local:1 --preset gbrt"), 2, &["candidates", "docs/cluster.md"]);
    fails(&train("--cluster local:1 --preset pgbrt --set workers=2"), 2, &["several workers"]);
    fails(&train("--cluster local:1 --preset rf-pair"), 2, &["pairwise forest"]);
    fails(&train("--cluster local:1 --preset rf-point --oob o"), 2, &["out-of-bag"]);
    fails("scheduler --bind 0.0.0.0", 2, &["unencrypted", "--plaintext"]);
    fails("executor --bind 0.0.0.0", 2, &["unencrypted", "--plaintext"]);
    fails("executor --scheduler nowhere", 2, &["HOST:PORT"]);
    let taken = std::net::TcpListener::bind(("127.0.0.1", nobody)).unwrap();
    fails(&format!("scheduler --port {nobody}"), 1, &["cannot run", "--port"]);
    drop(taken);
    // A dataset that the executors see as another one.
    let cluster = Cluster::start(2, &[]);
    let arguments = train(&format!("--cluster {} --set num_trees=2", cluster.url()));
    run(room.path(), &arguments).ok();
    let manifest = fs::read_to_string(room.path().join("data/_manifest.json")).unwrap();
    let part = manifest.split('"').find(|word| word.ends_with(".parquet")).unwrap().to_owned();
    let file = room.path().join("data").join(part);
    let mut bytes = fs::read(&file).unwrap();
    bytes[100] ^= 1;
    fs::write(&file, bytes).unwrap();
    fails(&arguments, 1, &["executor ", "damaged", "help: "]);
}

/// An authority `ca`, a certificate `node` that it signed, and a `stranger` that signed itself, as PEM files.
const CERTIFICATES: &str = r#"
import datetime, ipaddress, sys
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
now = datetime.datetime.now(datetime.timezone.utc)
def make(name, issuer=None):
    key = ec.generate_private_key(ec.SECP256R1())
    own = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    by, by_key = issuer or (own, key)
    cert = (x509.CertificateBuilder().subject_name(own).issuer_name(by).public_key(key.public_key())
        .serial_number(x509.random_serial_number()).not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=2))
        .add_extension(x509.BasicConstraints(ca=name == 'ca', path_length=None), True)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address('127.0.0.1'))]), False)
        .sign(by_key, hashes.SHA256()))
    open(name + '.pem', 'wb').write(cert.public_bytes(serialization.Encoding.PEM))
    open(name + '.key', 'wb').write(key.private_bytes(serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))
    return own, key
make('node', make('ca'))
make('stranger')
"#;

#[test]
fn nobody_speaks_to_a_cluster_without_its_certificates() {
    let Some(python) = python() else { return };
    let room = room();
    let made =
        std::process::Command::new(python).current_dir(room.path()).args(["-c", CERTIFICATES]).status();
    assert!(made.unwrap().success());
    dataset(room.path(), "data", &graded(5, 60, 20), "--partition-rows 200");
    let file = |name: &str| room.path().join(name).display().to_string();
    let shown = |authority: &str, name: &str| {
        let (authority, certificate, key) =
            (file(authority), file(&format!("{name}.pem")), file(&format!("{name}.key")));
        format!("--tls-ca {authority} --tls-certificate {certificate} --tls-key {key}")
    };
    let cluster = Cluster::start_with(2, &[], &shown("ca.pem", "node"));
    let with = format!("--data data --cluster {}", cluster.url());
    let expected = model(room.path(), "--data data");
    assert!(model(room.path(), &format!("{with} {}", shown("ca.pem", "node"))) == expected);
    // Queries exchange rows between executors; a token behind the certificates changes nothing for those who know it.
    fs::write(room.path().join("token"), "a-word-that-nobody-knows").unwrap();
    let both = format!("{} --token-file {}", shown("ca.pem", "node"), file("token"));
    let guarded = Cluster::start_with(2, &[], &both);
    let query = |rest: &str| {
        let mut command = command(room.path(), &format!("sql --format csv {rest}"));
        let text = "SELECT query_id, count(*) FROM data GROUP BY query_id ORDER BY query_id";
        Ran::of(command.args(["-c", text]).output().unwrap()).ok().stdout
    };
    run(room.path(), "predict --model m --data data --output expected").ok();
    for (cluster, known) in [(&cluster, &shown("ca.pem", "node")), (&guarded, &both)] {
        let there = format!("--cluster {} {known}", cluster.url());
        run(room.path(), &format!("predict --model m --data data --output p {there}")).ok();
        assert!(fs::read(room.path().join("p")).unwrap() == fs::read(room.path().join("expected")).unwrap());
        assert_eq!(query(&there), query(""));
    }
    let without = format!("train --data data --model n --cluster {}", guarded.url());
    let ran = run(room.path(), &format!("{without} {}", shown("ca.pem", "node"))).failed();
    assert!(ran.stderr.contains("the token is missing or wrong"), "{}", ran.stderr);
    drop(guarded);
    // Whether a stranger hears why, or only that nobody listens, is up to the order of the packets.
    for certificates in [String::new(), shown("ca.pem", "stranger"), shown("stranger.pem", "node")] {
        let begun = Instant::now();
        let ran = run(room.path(), &format!("train {with} --model n {certificates}")).failed();
        let error = ran.stderr.split("error: ").last().unwrap();
        assert!(error.contains("certificates"), "{certificates}: {}", ran.stderr);
        assert!(begun.elapsed() < Duration::from_secs(20), "{certificates}");
    }
    let half = format!("train {with} --model n --tls-ca {}", file("ca.pem"));
    assert_eq!(run(room.path(), &half).code, 2);
    let unfit = format!("train {with} --model n {}", shown("data.txt", "node"));
    assert!(run(room.path(), &unfit).failed().stderr.contains("data.txt"));
}
