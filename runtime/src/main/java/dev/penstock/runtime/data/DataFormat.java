package dev.penstock.runtime.data;

/** What the files of a run's data hold. */
public enum DataFormat {
    /** Plain text; each file is one document. */
    TEXT,
    /** One JSON object per line; each line's text field is one document. */
    JSONL,
    /** One safetensors file with {@code tokens}, I64 {@code [step, batch, context + 1]}. */
    TOKENS
}
