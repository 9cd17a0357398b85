/**
 * Weights and optimizer state on disk: directories of safetensors files in Hugging Face's GPT-2
 * names that are complete or do not count. Start with {@link
 * dev.penstock.runtime.checkpoint.CheckpointDirectory}.
 */
@NullMarked
package dev.penstock.runtime.checkpoint;

import org.jspecify.annotations.NullMarked;
