//! Retained messages: the newest message of each topic.
