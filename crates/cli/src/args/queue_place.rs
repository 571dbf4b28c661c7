//! Arguments that the commands for queues share: the queue, the group, the consumer.

use super::common::FileArg;
use clap::Args;
use tidalite::queue::DEFAULT_GROUP;

/// A queue of a file.
#[derive(Debug, Args)]
pub(crate) struct QueuePlace {
    #[command(flatten)]
    pub file: FileArg,

    /// Queue
    #[arg(long, value_name = "TABLE", default_value = "jobs")]
    pub table: String,
}

/// The group of a consumer.
#[derive(Debug, Args)]
pub(crate) struct QueueGroupArg {
    /// Group of consumers
    #[arg(long, value_name = "GROUP", default_value = DEFAULT_GROUP)]
    pub group: String,
}

/// A consumer of a group.
#[derive(Debug, Args)]
pub(crate) struct QueueConsumerArgs {
    #[command(flatten)]
    pub group: QueueGroupArg,

    /// Name of the consumer; only the consumer that leases a message can acknowledge it
    #[arg(long, value_name = "NAME", default_value = "tidalite")]
    pub consumer: String,
}
