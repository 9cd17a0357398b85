/**
 * From a configuration to a running pipeline: assembles plan, model, data and storage, and starts
 * the actors in one process or in one per stage.
 */
@NullMarked
package dev.penstock.runtime.launch;

import org.jspecify.annotations.NullMarked;
