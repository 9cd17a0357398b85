/**
 * Shapes and settings of the model, its batches and shards, and how layers are divided into stages.
 * No tensors here.
 */
@NullMarked
package dev.penstock.runtime.model.shape;

import org.jspecify.annotations.NullMarked;
