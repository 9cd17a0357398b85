/**
 * GGUF, the format of llama.cpp and of the JVM's inference engines: a model in one file, with its
 * configuration and tokenizer. Start with {@link dev.penstock.runtime.gguf.GgufModel}, which writes
 * one, or {@link dev.penstock.runtime.gguf.GgufFile}, which reads one.
 */
@NullMarked
package dev.penstock.runtime.gguf;

import org.jspecify.annotations.NullMarked;
