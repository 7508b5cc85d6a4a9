//! Training on a cluster gives the same bytes as on one machine, also when executors are lost.

use crate::support::cluster::Cluster;
use crate::support::object_stores::{environment, moto};
use crate::support::*;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

fn model(directory: &Path, arguments: &str) -> Vec<u8> {
    let rate = if arguments.contains("--preset rf-") { "" } else { "--set learning_rate=0.3" };
    trained_bytes(directory, &format!("--set num_trees=5 {rate} {arguments}"))
}

#[test]
fn a_cluster_trains_the_same_model_and_log() {
    let room = room();
    let examples = graded(21, 120, 25);
    dataset(room.path(), "data", &examples, "--partition-rows 300");
    weighted_dataset(room.path(), "weighted", &examples, "--partition-rows 300");
    dataset(room.path(), "vali", &graded(22, 40, 15), "--partition-rows 100");
    let cluster = Cluster::start(2, &[]);
    for variant in [
        "--preset planet --data data",
        "--preset planet --data weighted --set missing=learned --set bagging_fraction=0.7 --set feature_fraction=0.8",
        "--preset planet --data data --set query_fraction=0.5 --set features_per_node=3 --set num_leaves=9 --set max_depth=-1",
        "--preset planet --data data --set max_bin=12",
        "--preset lambdamart --data data",
        "--preset lambdamart --data weighted --set max_depth=3 --set num_leaves=0",
        "--preset lambdamart-paper --data weighted --set min_data_to_split=70 --set features_per_node=0.5",
        "--preset ranknet --data data --set leaf=mean",
        "--preset xendcg --data data --set query_fraction=0.6",
        "--preset pgbrt --data data",
        "--preset pgbrt --data data --set workers=3",
        "--preset pgbrt-grouped --data data",
        "--preset pgbrt-grouped --data weighted --set workers=5 --set min_data_in_leaf=12",
        "--preset pgbrt --data weighted --set workers=2 --set missing=learned",
        "--preset rf-point --data data",
        "--preset rf-list --data data",
        "--preset rf-rand --data data",
        "--preset rf-list --data data --set listwise_metric=err --set max_bin=0 --set leaf_order=depth --set max_depth=5",
        "--preset rf-list --data data --set queries_per_node=0.5 --set leaf_score=exp2",
        "--preset rf-hybrid --data weighted",
    ] {
        let outcome = |cluster: &str| {
            let model = model(room.path(), &format!("{variant} {cluster} --valid vali --rounds rounds"));
            (model, rounds_of(&room.path().join("rounds")))
        };
        let (expected, expected_log) = outcome("--threads 2");
        let (trained, log) = outcome(&format!("--cluster {}", cluster.url()));
        assert!(trained == expected, "{variant}");
        assert_eq!(log, expected_log, "{variant}");
    }
    // Fewer and more shares than executors, and more than there are partitions.
    let expected = model(room.path(), "--data data");
    for shares in [1, 3, 99] {
        let trained = model(room.path(), &format!("--data data --cluster {}?shares={shares}", cluster.url()));
        assert!(trained == expected, "{shares} shares");
    }
}

#[test]
fn histograms_may_be_merged_by_executors_and_requested_in_parts() {
    let room = room();
    let examples = graded(23, 120, 25);
    dataset(room.path(), "data", &examples, "--partition-rows 200");
    weighted_dataset(room.path(), "weighted", &examples, "--partition-rows 200");
    let bytes_per_level = |arguments: &str, expected: &[u8]| {
        let trained = model(room.path(), &format!("{arguments} --stats stats.json"));
        assert!(trained == expected, "{arguments}");
        let stats = json_of(&room.path().join("stats.json"));
        let cluster = &stats["cluster"];
        assert_eq!(cluster["rebuilt"], 0, "{arguments}: a share moved: {cluster}");
        cluster["level_bytes_p50"].as_f64().unwrap()
    };
    let cluster = Cluster::start(2, &[]);
    for variant in [
        "--preset planet --data weighted",
        "--preset lambdamart --data data",
        "--preset pgbrt-grouped --data data",
        "--preset pgbrt --data data --set workers=10",
    ] {
        let expected = model(room.path(), variant);
        let bytes = ["shares=10&merge=0", "shares=10", "shares=10&merge=1&overlap=3", "merge=4&overlap=2"]
            .map(|usage| {
                bytes_per_level(&format!("{variant} --cluster {}?{usage}", cluster.url()), &expected)
            });
        // Ten answers without merging, one with it. It is less than ten times smaller: in nodes of few rows, the shares
        // have few cells in common.
        assert!(bytes[1..].iter().all(|merged| bytes[0] > 1.2 * merged), "{variant}: {bytes:?}");
    }
    // The second stage of a job merges: both executors took part in it.
    for executor in 0..2 {
        assert!(cluster.stages_of(executor).contains(&2), "{:?}", cluster.stages_of(executor));
    }
}

/// Workers have whole queries, wherever row groups end. Neither partitions nor executors change a byte.
#[test]
fn workers_are_the_same_in_one_process_and_on_any_number_of_executors() {
    let room = room();
    let examples = graded(29, 90, 20);
    dataset(room.path(), "one", &examples, "");
    dataset(room.path(), "many", &examples, "--partition-rows 130");
    for workers in [1, 2, 4, 8] {
        let with = |arguments: &str| {
            model(room.path(), &format!("--preset pgbrt --set workers={workers} {arguments}"))
        };
        let expected = with("--data one --threads 1");
        assert!(with("--data many --threads 2") == expected, "{workers} workers");
        for (data, executors) in [("one", 2), ("many", 1), ("many", 2), ("many", 3)] {
            let arguments = format!("--data {data} --cluster local:{executors}");
            assert!(with(&arguments) == expected, "{workers} workers: {arguments}");
        }
    }
}

/// By default, the engine repartitions the scans of large files, which would divide shares.
#[test]
fn shares_of_large_files_stay_whole() {
    let room = room();
    run(room.path(), "sample --shape yahoo --rows 40000 --seed 5 --output text").ok();
    run(room.path(), "convert text/train.txt --output data --partition-rows 2000").ok();
    let files =
        fs::read_dir(room.path().join("data")).unwrap().map(|file| file.unwrap().metadata().unwrap().len());
    assert!(files.sum::<u64>() > 12 << 20, "the engine does not repartition scans below 10 MiB");
    let arguments = "--preset planet --data data --set max_bin=15 --set max_depth=3";
    let expected = model(room.path(), arguments);
    for usage in ["shares=3", "shares=3&merge=2"] {
        assert!(model(room.path(), &format!("{arguments} --cluster local:2?{usage}")) == expected, "{usage}");
    }
}

#[test]
fn a_local_cluster_is_started_and_stopped() {
    let room = room();
    dataset(room.path(), "data", &graded(5, 60, 20), "--partition-rows 200");
    let expected = model(room.path(), "--preset lambdamart --data data");
    for executors in [1, 3] {
        let arguments =
            format!("--preset lambdamart --data data --cluster local:{executors} --stats stats.json");
        assert!(model(room.path(), &arguments) == expected, "{executors}");
        let stats = json_of(&room.path().join("stats.json"));
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
fn a_training_survives_the_loss_of_a_merging_executor() {
    lose_an_executor("?shares=10&merge=3");
}

fn lose_an_executor(usage: &str) {
    let room = room();
    dataset(room.path(), "data", &graded(7, 200, 25), "--partition-rows 400");
    let arguments = "--data data --set num_trees=12 --model";
    train(room.path(), &format!("{arguments} expected"));
    let mut cluster = Cluster::start(2, &[]);
    let mut training = command(
        room.path(),
        &format!("train {arguments} m --cluster {}{usage} --stats stats.json --quiet", cluster.url()),
    )
    .spawn()
    .unwrap();
    // Every level of a tree is a job; after twenty, both executors hold shares in the middle of the training.
    let jobs = cluster.jobs_of(1) + 20;
    assert!(
        cluster.wait_for_jobs(1, jobs, &mut training),
        "the training ended before an executor was killed"
    );
    cluster.executors[1].kill().unwrap(); // SIGKILL
    let begun = Instant::now();
    cluster.add_executor();
    assert!(training.wait().unwrap().success());
    assert!(begun.elapsed() < Duration::from_secs(60), "recovery took {:?}", begun.elapsed());
    assert_same_bytes(room.path(), "m", "expected", usage);
    let stats = json_of(&room.path().join("stats.json"));
    assert!(stats["cluster"]["rebuilt"].as_u64().unwrap() > 0, "{stats}");
}

#[test]
fn a_killed_training_is_resumed_on_a_cluster() {
    let room = room();
    dataset(room.path(), "data", &graded(9, 60, 20), "--partition-rows 200");
    let cluster = Cluster::start(2, &[]);
    let with = format!("--preset lambdamart --data data --cluster {}", cluster.url());
    let checkpoint = room.path().join("m.checkpoint");
    let arguments = format!("{with} --model m --checkpoint-every 2");
    kill_training_when(room.path(), &arguments, "a checkpoint", || checkpoint.exists());
    let trees = trees_in(&checkpoint) + 2;
    train(room.path(), &format!("--preset lambdamart --data data --set num_trees={trees} --model expected"));
    let ran = run(room.path(), &format!("train {with} --set num_trees={trees} --model m --resume")).ok();
    assert!(ran.stderr.contains("resuming from round"), "{}", ran.stderr);
    assert!(!checkpoint.exists(), "a complete model needs no checkpoint");
    assert_same_bytes(room.path(), "m", "expected", &with);
}

#[test]
fn a_dataset_in_an_object_store_needs_no_shared_disk() {
    let Some(server) = moto() else { return };
    let environment = environment(server.port);
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
    // Credentials are not sent to executors: these have none.
    let cluster = Cluster::start(2, &[]);
    let arguments = format!("train --data s3://bucket/data --model m --cluster {}", cluster.url());
    let ran = run_with(room.path(), &arguments, &environment).failed();
    assert!(ran.stderr.contains("executor ") && ran.stderr.contains("help: "), "{}", ran.stderr);
}

#[test]
fn errors_of_a_cluster_name_the_problem_and_a_remedy() {
    let room = room();
    dataset(room.path(), "data", &graded(5, 20, 10), "");
    let fails = |arguments: &str, code: i32, messages: &[&str]| {
        assert_refused(arguments, &run(room.path(), arguments), code, messages);
    };
    let unused = free_port();
    let train = |rest: &str| format!("train --data data --model m {rest}");
    fails(&train(&format!("--cluster df://127.0.0.1:{unused}")), 1, &["no scheduler", "planetree scheduler"]);
    fails(&train("--cluster df://10.99.99.99:1"), 1, &["data: executors cannot read a local path", "s3://"]);
    fails(&train("--cluster local:0"), 2, &["local:0", "local:2"]);
    fails(&train("--cluster http://host"), 2, &["df://host:port"]);
    fails(&train("--cluster local:1 --preset rf-pair"), 2, &["pairwise forest", "docs/cluster.md"]);
    fails(&train("--cluster local:1 --preset rf-point --oob o"), 2, &["out-of-bag"]);
    fails("scheduler --bind 0.0.0.0", 2, &["unencrypted", "--plaintext"]);
    fails("executor --bind 0.0.0.0", 2, &["unencrypted", "--plaintext"]);
    fails("executor --scheduler nowhere", 2, &["HOST:PORT"]);
    let taken = std::net::TcpListener::bind(("127.0.0.1", unused)).unwrap();
    fails(&format!("scheduler --port {unused}"), 1, &["cannot run", "--port"]);
    drop(taken);
    // A dataset that was damaged after the cluster had opened it.
    let cluster = Cluster::start(2, &[]);
    let arguments = train(&format!("--cluster {} --set num_trees=2", cluster.url()));
    run(room.path(), &arguments).ok();
    damage_dataset(&room.path().join("data"));
    fails(&arguments, 1, &["executor ", "damaged", "help: "]);
}

/// Writes PEM files: an authority `ca`, a certificate `node` signed by it, and a self-signed `stranger`.
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
fn a_cluster_refuses_clients_without_its_certificates() {
    let room = room();
    if !run_python(room.path(), CERTIFICATES) {
        return;
    }
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
    // Queries exchange rows between executors. A token in addition to certificates changes nothing for clients that have it.
    fs::write(room.path().join("token"), "a-secret-test-token").unwrap();
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
        assert_same_bytes(room.path(), "p", "expected", &there);
        assert_eq!(query(&there), query(""));
    }
    let without = format!("train --data data --model n --cluster {}", guarded.url());
    let ran = run(room.path(), &format!("{without} {}", shown("ca.pem", "node"))).failed();
    assert!(ran.stderr.contains("the token is missing or wrong"), "{}", ran.stderr);
    drop(guarded);
    // Whether the client receives the reason or only a closed connection depends on the order of packets.
    for certificates in [String::new(), shown("ca.pem", "stranger"), shown("stranger.pem", "node")] {
        let begun = Instant::now();
        let ran = run(room.path(), &format!("train {with} --model n {certificates}")).failed();
        let error = ran.stderr.split("error: ").last().unwrap();
        assert!(error.contains("certificates"), "{certificates}: {}", ran.stderr);
        assert!(begun.elapsed() < Duration::from_secs(20), "{certificates}");
    }
    let half = format!("train {with} --model n --tls-ca {}", file("ca.pem"));
    assert_refused(&half, &run(room.path(), &half), 2, &["--tls-certificate", "--tls-key"]);
    let unfit = format!("train {with} --model n {}", shown("data.txt", "node"));
    assert!(run(room.path(), &unfit).failed().stderr.contains("data.txt"));
}

#[test]
fn hostile_bytes_on_the_ports_of_a_cluster_change_nothing() {
    use planetree::random::Stream;
    use std::io::{Read, Write};
    use std::net::TcpStream;
    let room = room();
    dataset(room.path(), "data", &graded(71, 40, 10), "--partition-rows 100");
    let arguments = "--data data --set num_trees=3";
    let expected = model(room.path(), arguments);
    let mut cluster = Cluster::start(2, &[]);
    let mut draw = Stream::new(&[17]);
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    for case in 0..60 {
        let Ok(mut stream) = TcpStream::connect(("127.0.0.1", cluster.port())) else { panic!("case {case}") };
        let garbage: Vec<u8> = (0..1 + draw.bits() % 3000).map(|_| draw.bits() as u8).collect();
        let bytes = match case % 4 {
            0 => garbage,
            1 => [preface.as_slice(), &garbage].concat(),
            2 => b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 18446744073709551615\r\n\r\n".to_vec(),
            // A frame that claims to be longer than it is.
            _ => [preface.as_slice(), &[0xFF, 0xFF, 0xFF, 0, 0, 0, 0, 0, 1], &garbage].concat(),
        };
        let _ = stream.write_all(&bytes); // the server may have closed the connection
        stream.set_read_timeout(Some(std::time::Duration::from_millis(20))).unwrap();
        let _ = stream.read(&mut [0; 64]);
    }
    let found = model(room.path(), &format!("{arguments} --cluster {}", cluster.url()));
    assert!(found == expected);
    for executor in &mut cluster.executors {
        assert!(executor.try_wait().unwrap().is_none(), "an executor ended");
    }
}
