use super::super::task::{ClusterCommand, pack};
use super::*;
use datafusion::datasource::listing::PartitionedFile;
use planetree_base::job::Partial;
use planetree_train::jobs::Survey;
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicUsize, Ordering};

fn group(start: i64) -> FileGroup {
    FileGroup::new(vec![PartitionedFile::new_with_range("nowhere/part".to_owned(), 10, start, start + 2)])
}

fn task(step: Step) -> Task {
    let (run, data) = ("test".to_owned(), "/nowhere/at/all".to_owned());
    ClusterCommand { run, data, ..ClusterCommand::default() }.task(step)
}

fn run_step<J: Job>() -> Step {
    Step::Run { job: J::NAME.to_owned(), blocks: 1, member: 0 }
}

#[test]
fn what_cannot_be_answered_is_said_with_a_remedy() {
    let (number, here) = answer(&task(Step::Probe), &[], &[], &group(3));
    assert!(number == 3 && matches!(&here[..], [Reply::Identity(identity)] if identity.build == BUILD));
    let other = Task { build: "planetree 0.0.9 cluster 1".to_owned(), ..task(Step::Forget) };
    let (_, refused) = answer(&other, &[], &[], &group(3));
    assert!(
        matches!(&refused[..], [Reply::Failed { problem, remedy }]
        if problem.contains("planetree 0.0.9") && remedy.contains("same build")),
        "{refused:?}"
    );
    let survey = Survey { features: 0..1, rows: true, parameters: String::new() };
    let (_, absent) = answer(&task(run_step::<Survey>()), &pack(&survey), &[], &group(3));
    assert!(
        matches!(&absent[..], [Reply::Failed { problem, .. }] if problem.contains("/nowhere/at/all")),
        "{absent:?}"
    );
    assert_eq!(compact::from_bytes::<Vec<Reply>>(&compact::to_bytes(&absent)).unwrap(), absent);
    let unknown = Step::Run { job: "no such job".to_owned(), blocks: 1, member: 0 };
    let (_, unknown) = answer(&task(unknown), &[], &[], &group(3));
    assert!(matches!(&unknown[..], [Reply::Failed { problem, .. }] if problem.contains("no such job")));
}

/// A job that counts its requests in its state and returns the count.
#[derive(Serialize, Deserialize)]
struct Count {
    /// The number of requests that the state must have counted already. A state with fewer is outdated, and not used.
    from: usize,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Counted(usize);

struct Here;

impl JobData for Here {
    fn open(_: &[Location]) -> Result<Self> {
        Ok(Here)
    }

    fn content_key(&self) -> Result<String> {
        Ok("right".to_owned())
    }

    fn mismatch(place: &str) -> Error {
        Error::place(place, "differs", "use the same")
    }
}

impl Partial for Counted {
    fn merge(&mut self, other: Self) -> Result<()> {
        self.0 += other.0;
        Ok(())
    }
}

impl Job for Count {
    const NAME: &'static str = "count";
    type Data = Here;
    type State = AtomicUsize;
    type Snapshot = usize;
    type Partial = Counted;

    fn prepare(&self, snapshot: Option<usize>, _: &Shard<'_, Here>) -> Result<Option<AtomicUsize>> {
        Ok(snapshot.map(AtomicUsize::new))
    }

    fn state_bytes(_: &AtomicUsize) -> u64 {
        10
    }

    fn map(&self, state: &AtomicUsize, _: &Shard<'_, Here>) -> Result<Option<Counted>> {
        let is_behind = state.load(Ordering::Relaxed) < self.from;
        Ok((!is_behind).then(|| Counted(state.fetch_add(1, Ordering::Relaxed) + 1)))
    }
}

#[test]
fn states_are_cached_rebuilt_and_evicted() {
    let cache = ExecutorCache::default();
    let right = Task { fingerprint: "right".to_owned(), ..task(run_step::<Count>()) };
    let ask = |task: &Task, key: &str, from: usize, snapshot: Option<usize>| {
        let (job, snapshot) = (pack(&Count { from }), snapshot.map(|from| pack(&from)).unwrap_or_default());
        let request =
            ShardRequest { task, blocks: 1, member: 0, job: &job, snapshot: &snapshot, key, parts: &[0] };
        let replies = run::<Count>(&cache, &request)?;
        Ok::<_, Error>(match &replies[..] {
            [Reply::Block { of: 1, partial }] => Some(compact::from_bytes::<Counted>(&partial.0)?.0),
            [Reply::MissingState] => None,
            other => panic!("{other:?}"),
        })
    };
    assert_eq!(ask(&right, "a", 0, None).unwrap(), None);
    assert_eq!(ask(&right, "a", 0, Some(5)).unwrap(), Some(6));
    assert_eq!(ask(&right, "a", 0, None).unwrap(), Some(7));
    // The state is outdated, then rebuilt from a snapshot, then used again although another snapshot is sent.
    assert_eq!(ask(&right, "a", 9, None).unwrap(), None);
    assert_eq!(ask(&right, "a", 9, Some(9)).unwrap(), Some(10));
    assert_eq!(ask(&right, "a", 9, Some(70)).unwrap(), Some(11));
    // A snapshot that is itself outdated is not an error, because the driver decides how often to repeat a request.
    assert_eq!(ask(&right, "b", 9, Some(8)).unwrap(), None);
    // Every command has its own states.
    let other = Task { run: "other".to_owned(), ..right.clone() };
    assert_eq!(ask(&other, "a", 0, None).unwrap(), None);
    // Only two states of 10 bytes fit, so the least recently used one is evicted.
    lock(&cache.index).limit = Some(25);
    assert_eq!(ask(&right, "b", 0, Some(20)).unwrap(), Some(9), "a state that was prepared is kept");
    assert_eq!(ask(&right, "a", 0, None).unwrap(), Some(12));
    assert_eq!(ask(&right, "c", 0, Some(30)).unwrap(), Some(31));
    assert_eq!(ask(&right, "b", 0, None).unwrap(), None);
    assert_eq!(ask(&right, "a", 0, None).unwrap(), Some(13));
    // Data whose fingerprint differs from the driver's are rejected.
    let wrong = Task { run: "wrong".to_owned(), fingerprint: String::new(), ..right };
    assert!(ask(&wrong, "a", 0, None).unwrap_err().to_string().contains("differs"));
}
