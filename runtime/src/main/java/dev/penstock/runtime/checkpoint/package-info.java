/**
 * Weights and optimizer state on disk: safetensors files in Hugging Face GPT-2 names, and
 * directories of them that are complete or do not count. Start with {@link
 * dev.penstock.runtime.checkpoint.SafetensorsFile}.
 */
@NullMarked
package dev.penstock.runtime.checkpoint;

import org.jspecify.annotations.NullMarked;
