//! A cluster under attack: hostile bytes on its ports, requests without its token, and executors that hang, have full
//! disks or are killed. Models keep their bytes, or the command fails in time with the cause.

use crate::support::cluster::Cluster;
use crate::support::hostile::{
    EXECUTOR, RESULTS, SCHEDULER, has_headers, hostile_bytes, request, send, send_until,
};
use crate::support::*;
use planetree::random::Stream;
use std::fs;
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long the program takes at most to notice that no executor answers, as the manual says.
const ALL_LOST: Duration = Duration::from_secs(120);

/// Makes a dataset, and a model `expected` that was trained without a cluster. Returns the arguments of its training.
fn prepare(room: &Path, trees: usize) -> String {
    dataset(room, "data", &graded(7, 200, 25), "--partition-rows 400");
    let arguments = format!("--data data --set num_trees={trees} --model");
    train(room, &format!("{arguments} expected"));
    arguments
}

/// Starts a training of the model `m`.
fn start_training(room: &Path, arguments: &str, address: &str) -> Child {
    let line = format!("train {arguments} m --cluster {address} --stats stats.json --quiet");
    command(room, &line).stderr(Stdio::piped()).spawn().unwrap()
}

/// Starts a training and waits until every executor has results of twenty levels of its trees.
fn train_for_a_while(room: &Path, arguments: &str, cluster: &Cluster, usage: &str) -> Child {
    let last = cluster.executors.len() - 1;
    let jobs = cluster.jobs_of(last) + 20;
    let mut training = start_training(room, arguments, &format!("{}{usage}", cluster.url()));
    assert!(cluster.wait_for_jobs(last, jobs, &mut training), "the training ended before the attack");
    training
}

/// Waits for a training that must succeed, with the model that a single machine trains.
fn assert_unharmed(room: &Path, training: Child, context: &str) {
    Ran::of(training.wait_with_output().unwrap()).ok();
    assert_same_bytes(room, "m", "expected", context);
}

/// The memory of a process in MiB.
fn memory_of(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1024
}

#[test]
fn hostile_bytes_on_the_ports_of_a_cluster_do_no_harm() {
    let room = room();
    let arguments = prepare(room.path(), 60);
    let cluster = Cluster::start(2, &[]);
    let training = train_for_a_while(room.path(), &arguments, &cluster, "");
    let mut idle = Vec::new();
    for (number, port) in cluster.ports().into_iter().enumerate() {
        idle.extend((0..40).map(|_| TcpStream::connect(("127.0.0.1", port)).unwrap()));
        for bytes in hostile_bytes(&mut Stream::new(&[number as u64])) {
            send(port, &bytes, Duration::from_millis(20));
        }
    }
    assert_unharmed(room.path(), training, "hostile bytes");
    for process in cluster.processes() {
        let megabytes = memory_of(process);
        assert!((1..400).contains(&megabytes), "{megabytes} MiB");
    }
    // The cluster still works, with the silent connections open.
    let training = start_training(room.path(), &arguments, &cluster.url());
    assert_unharmed(room.path(), training, "after hostile bytes");
    let stats = json_of(&room.path().join("stats.json"));
    assert_eq!(stats["cluster"]["rebuilt"], 0, "an executor was lost: {stats}");
    drop(idle);
}

#[test]
fn every_port_of_a_cluster_refuses_requests_without_its_token() {
    let room = room();
    fs::write(room.path().join("token"), "a-secret-test-token\n").unwrap();
    let option = format!("--token-file {}", room.path().join("token").display());
    let cluster = Cluster::start_with(1, &[], &option);
    // The status 16, unauthenticated, in the code of HPACK.
    let is_refused = |answer: &[u8]| answer.windows(3).any(|bytes| bytes == [0x82, 0b0000_1011, 0b1001_1111]);
    let [scheduler, results, tasks] = cluster.ports()[..] else { panic!("three ports") };
    for (port, method) in [
        (scheduler, format!("{SCHEDULER}ExecuteQuery")),
        (scheduler, format!("{SCHEDULER}RegisterExecutor")),
        (scheduler, format!("{SCHEDULER}HeartBeatFromExecutor")),
        (results, format!("{RESULTS}DoGet")),
        (results, format!("{RESULTS}DoAction")),
        (tasks, format!("{EXECUTOR}LaunchMultiTask")),
        (tasks, format!("{EXECUTOR}StopExecutor")),
    ] {
        for agent in [
            "",
            "tonic/0.14",
            "planetree-token-",
            "planetree-token-a-wrong-test-token",
            "planetree-token-a-secret-test-toke",
            "planetree-token-a-secret-test-tokens",
            "a-secret-test-token",
        ] {
            let answer = send_until(port, &request(&method, agent, 2, &[8, 1]), is_refused);
            assert!(is_refused(&answer), "{method}: {agent:?}");
        }
        if !method.ends_with("StopExecutor") {
            let right = request(&method, "planetree-token-a-secret-test-token", 3, &[0xFF, 0xFF, 0xFF]);
            let answer = send_until(port, &right, has_headers);
            assert!(has_headers(&answer) && !is_refused(&answer), "{method}");
        }
    }
    cluster.wait_until_registered(1);
}

#[test]
fn a_training_survives_an_executor_that_hangs() {
    hang_an_executor("");
}

#[test]
fn a_training_survives_a_merging_executor_that_hangs() {
    hang_an_executor("?shares=10&merge=3");
}

fn hang_an_executor(usage: &str) {
    let room = room();
    let arguments = prepare(room.path(), 12);
    let cluster = Cluster::start(2, &[]);
    let training = train_for_a_while(room.path(), &arguments, &cluster, usage);
    signal(&cluster.executors[1], "-STOP");
    let begun = Instant::now();
    assert_unharmed(room.path(), training, usage);
    assert!(begun.elapsed() < Duration::from_secs(90), "recovery took {:?}", begun.elapsed());
    let stats = json_of(&room.path().join("stats.json"));
    assert!(stats["cluster"]["rebuilt"].as_u64().unwrap() > 0, "{stats}");
    // An executor that continues does no harm: what it had computed is out of date.
    signal(&cluster.executors[1], "-CONT");
    let training = start_training(room.path(), &arguments, &format!("{}{usage}", cluster.url()));
    assert_unharmed(room.path(), training, "after the pause");
}

#[test]
fn the_loss_of_all_executors_is_an_error_in_time() {
    let room = room();
    let arguments = prepare(room.path(), 100);
    let arguments = format!("--checkpoint c --checkpoint-every 1 {arguments}");
    for name in ["-KILL", "-STOP"] {
        let mut cluster = Cluster::start(1, &[]);
        let training = train_for_a_while(room.path(), &arguments, &cluster, "");
        signal(&cluster.executors[0], name);
        let begun = Instant::now();
        let ran = Ran::of(training.wait_with_output().unwrap()).failed();
        assert!(begun.elapsed() < ALL_LOST, "{name}: {:?}", begun.elapsed());
        let expected = ["no response from the cluster: ", "executor", "help: ", "--resume"];
        assert_refused(name, &ran, 1, &expected);
        assert!(!room.path().join("m").exists());
        // With another executor, the training continues where it was.
        cluster.add_executor();
        cluster.wait_until_registered(1);
        let resumed = start_training(room.path(), &format!("--resume {arguments}"), &cluster.url());
        assert_unharmed(room.path(), resumed, name);
        fs::remove_file(room.path().join("m")).unwrap();
    }
}

#[test]
fn a_training_waits_for_an_executor_that_is_restarted() {
    let room = room();
    let arguments = prepare(room.path(), 30);
    let mut cluster = Cluster::start(1, &[]);
    let training = train_for_a_while(room.path(), &arguments, &cluster, "");
    cluster.executors[0].kill().unwrap(); // SIGKILL
    // By then, the scheduler has given up the first request, and holds the second one.
    std::thread::sleep(Duration::from_secs(25));
    cluster.add_executor();
    assert_unharmed(room.path(), training, "a restart");
}

#[test]
fn work_leaves_an_executor_whose_disk_is_full() {
    let room = room();
    let arguments = prepare(room.path(), 20);
    let mut cluster = Cluster::start(1, &[]);
    let full = cluster.work_folder(1);
    fs::create_dir_all(&full).unwrap();
    let is_mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=512k", "tmpfs"])
        .arg(&full)
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !is_mounted {
        impossible_here("a small file system cannot be mounted here: this needs root and mount");
        return;
    }
    cluster.add_executor();
    let port = cluster.ports()[4];
    wait_for("the second executor", || TcpStream::connect(("127.0.0.1", port)).is_ok());
    std::thread::sleep(Duration::from_secs(1)); // until it has registered
    // The results of some levels fill its disk.
    let training = start_training(room.path(), &arguments, &cluster.url());
    let ended = Ran::of(training.wait_with_output().unwrap());
    let levels = cluster.jobs_of(1);
    let is_alive = cluster.executors[1].try_wait().unwrap().is_none();
    // Without another executor, the cause is named.
    cluster.executors[0].kill().unwrap();
    let begun = Instant::now();
    let alone = run(room.path(), &format!("train {arguments} alone --cluster {}", cluster.url()));
    let took = begun.elapsed();
    cluster.executors[1].kill().unwrap();
    cluster.executors[1].wait().unwrap(); // a file system in use cannot be unmounted
    assert!(Command::new("umount").arg(&full).status().unwrap().success());
    ended.ok();
    assert_same_bytes(room.path(), "m", "expected", "a full disk");
    assert!(is_alive && levels > 1, "{levels} levels before the disk was full");
    let stats = json_of(&room.path().join("stats.json"));
    assert!(stats["cluster"]["rebuilt"].as_u64().unwrap() > 0, "{stats}");
    assert_refused(
        "alone",
        &alone,
        1,
        &["No space left on device", "help: free space in the directory --work-dir"],
    );
    assert!(took < ALL_LOST && !room.path().join("alone").exists(), "{took:?}");
}

/// Kills executors at random moments, one after the other, and replaces them, during as many trainings as that takes.
fn kill_executors(kills: usize) {
    let room = room();
    let arguments = prepare(room.path(), 30);
    let mut cluster = Cluster::start(2, &[]);
    let mut alive = [0, 1];
    let mut draw = Stream::new(&[kills as u64]);
    let mut killed = 0;
    while killed < kills {
        let mut training = start_training(room.path(), &arguments, &cluster.url());
        while killed < kills && training.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(draw.bits() % 3000));
            let victim = &mut alive[(draw.bits() % 2) as usize];
            cluster.executors[*victim].kill().unwrap(); // SIGKILL
            cluster.executors[*victim].wait().unwrap();
            *victim = cluster.executors.len();
            cluster.add_executor();
            killed += 1;
        }
        assert_unharmed(room.path(), training, &format!("{killed} kills"));
    }
    let training = start_training(room.path(), &arguments, &cluster.url());
    assert_unharmed(room.path(), training, "the end");
}

#[test]
fn executors_killed_at_random_moments_do_not_change_a_model() {
    kill_executors(4);
}

#[test]
#[ignore = "takes about half an hour"]
fn a_hundred_killed_executors_do_not_change_a_model() {
    kill_executors(100);
}

#[test]
fn a_local_cluster_survives_the_loss_of_an_executor() {
    let room = room();
    let arguments = prepare(room.path(), 100);
    let mut training = start_training(
        room.path(),
        &arguments,
        "local:2 --rounds rounds --checkpoint c --checkpoint-every 1",
    );
    wait_for("a checkpoint", || room.path().join("c").exists() || training.try_wait().unwrap().is_some());
    // Each thread lists the processes that it has started.
    let threads = fs::read_dir(format!("/proc/{}/task", training.id())).unwrap();
    let children: String = threads
        .map(|thread| fs::read_to_string(thread.unwrap().path().join("children")).unwrap_or_default() + " ")
        .collect();
    let is_executor = |process: &&str| {
        fs::read(format!("/proc/{process}/cmdline"))
            .is_ok_and(|line| line.windows(9).any(|word| word == b"executor\0"))
    };
    let victim = children.split_whitespace().find(is_executor).expect("the training has executors");
    assert!(Command::new("kill").args(["-KILL", victim]).status().unwrap().success());
    assert_unharmed(room.path(), training, "a local cluster");
}
