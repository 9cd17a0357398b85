/**
 * Serves a model by HTTP, in the protocol of OpenAI: requests, their texts in a pipeline that they
 * share, answers.
 */
@NullMarked
package dev.penstock.runtime.serve;

import org.jspecify.annotations.NullMarked;
