//! `object`: commands for objects in buckets.
//!
//! ```text
//! place     the table that a command names
//! line      objects as JSON, and outcomes of conditional changes
//! source    the bytes of a file or of standard input
//! create    a new bucket, and its options
//! put       put
//! resume    put --resume
//! get       get
//! list      ls, info
//! change    rm, mv, cp, set
//! upload    uploads
//! link      links
//! stat      stat, verify, maintain
//! ```

mod change;
mod create;
mod get;
mod line;
mod link;
mod list;
mod place;
mod put;
mod resume;
mod source;
mod stat;
mod upload;

use crate::args::{ObjectArgs, ObjectCommand, ObjectLinkCommand, ObjectUploadCommand};
use crate::exit::Outcome;
use crate::terminal::Terminal;

/// Runs the command `tidalite object`.
pub(crate) fn run(args: &ObjectArgs, terminal: &mut Terminal<'_>) -> Outcome {
    match &args.command {
        ObjectCommand::Create(args) => create::run(args, terminal),
        ObjectCommand::Put(args) if args.resume => resume::run(args, terminal),
        ObjectCommand::Put(args) => put::run(args, terminal),
        ObjectCommand::Get(args) => get::run(args, terminal),
        ObjectCommand::Ls(args) => list::ls(args, terminal),
        ObjectCommand::Info(args) => list::info(args, terminal),
        ObjectCommand::Rm(args) => change::rm(args, terminal),
        ObjectCommand::Mv(args) => change::mv(args, terminal),
        ObjectCommand::Cp(args) => change::cp(args, terminal),
        ObjectCommand::Set(args) => change::set(args, terminal),
        ObjectCommand::Verify(args) => stat::verify(args, terminal),
        ObjectCommand::Upload(args) => match &args.command {
            ObjectUploadCommand::Begin(args) => upload::begin(args, terminal),
            ObjectUploadCommand::Append(args) => upload::append(args, terminal),
            ObjectUploadCommand::Part(args) => upload::part(args, terminal),
            ObjectUploadCommand::Complete(args) => upload::complete(args, terminal),
            ObjectUploadCommand::Extend(args) => upload::extend(args, terminal),
            ObjectUploadCommand::Abort(args) => upload::abort(args, terminal),
            ObjectUploadCommand::List(args) => upload::list(args, terminal),
        },
        ObjectCommand::Link(args) => match &args.command {
            ObjectLinkCommand::Create(args) => link::create(args, terminal),
            ObjectLinkCommand::Revoke(args) => link::revoke(args, terminal),
            ObjectLinkCommand::List(args) => link::list(args, terminal),
        },
        ObjectCommand::Stat(args) => stat::run(args, terminal),
        ObjectCommand::Maintain(args) => stat::maintain(args, terminal),
    }
}
