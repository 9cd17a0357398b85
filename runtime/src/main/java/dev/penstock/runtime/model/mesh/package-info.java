/**
 * Matrix products, norms and gradients of tensor shards that lie on a mesh. Start with {@link
 * dev.penstock.runtime.model.mesh.MeshProduct}.
 */
@NullMarked
package dev.penstock.runtime.model.mesh;

import org.jspecify.annotations.NullMarked;
