//! The background flusher: a thread that makes commits durable that are lazy or wait for a flush. It is started only
//! on request (`Options::background_flush`), and ends when the file is closed or poisoned. After any other error it
//! tries again.

use crate::commit::pipeline::Until;
use crate::txn::inner::Inner;
use crate::txn::make_durable;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tidalite_base::{Signal, TxnId, Worker};

/// Minimum pause between two checks; a shorter pause would keep a processor busy with polling.
const PAUSE_MIN: Duration = Duration::from_millis(1);

/// Starts the background flusher. Returns `None` if the system cannot start a thread; then only commits and `sync`
/// flush.
pub(crate) fn start(inner: &Arc<Inner>, pause: Duration) -> Option<Worker> {
    let weak = Arc::downgrade(inner);
    Worker::start_detached("flush", move |signal| run(signal, &weak, pause)).ok()
}

fn run(signal: &Signal, inner: &Weak<Inner>, pause: Duration) {
    while signal.park_for(pause.max(PAUSE_MIN)) {
        let Some(inner) = inner.upgrade() else {
            return;
        };
        let Some(newest) = inner.pipeline.newest_recorded() else {
            continue;
        };
        // A failed sync poisons the file, and the next writer gets the error.
        let done = make_durable(&inner, (TxnId(newest), Until::Kept), None);
        if done.is_err() && inner.files.check_poison().is_err() {
            return;
        }
    }
}
