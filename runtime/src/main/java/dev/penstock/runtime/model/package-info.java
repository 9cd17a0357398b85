/**
 * GPT-2 as stages of a pipeline: shapes and partitions, parameters in Hugging Face's naming, the
 * layers with their forward and backward over token slices, the optimizer, and generation of text.
 * Start with {@link dev.penstock.runtime.model.GptStageFactory} and {@link
 * dev.penstock.runtime.model.StageLayers}.
 */
@NullMarked
package dev.penstock.runtime.model;

import org.jspecify.annotations.NullMarked;
