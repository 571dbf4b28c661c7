//! Distributes work over several threads.

/// Runs `work` on this many threads; returns the first error of any thread.
pub(super) fn on_threads(
    threads: usize,
    work: &(impl Fn() -> Result<(), String> + Sync),
) -> Result<(), String> {
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let ended: Vec<Result<(), String>> = workers
            .into_iter()
            .map(|worker| worker.join().unwrap_or_else(|_| Err("a panic".to_owned())))
            .collect();
        ended.into_iter().find(Result::is_err).unwrap_or(Ok(()))
    })
}
