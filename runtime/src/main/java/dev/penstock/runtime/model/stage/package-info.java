/**
 * A stage of the model on its rank: forward, backward, optimizer, and the bytes that it holds and
 * sends. Start with {@link dev.penstock.runtime.model.stage.GptStageFactory}.
 */
@NullMarked
package dev.penstock.runtime.model.stage;

import org.jspecify.annotations.NullMarked;
