mod documents;
mod documents_fields;
mod documents_json;
mod expressions;
mod expressions_rules;
mod storage;
