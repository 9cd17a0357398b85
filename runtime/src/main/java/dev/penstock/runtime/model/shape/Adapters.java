package dev.penstock.runtime.model.shape;

import java.util.List;

/**
 * Low-rank branches beside linear layers (LoRA, Hu et al., arXiv 2106.09685): {@code y = x W +
 * alpha / rank (x A) B}, A {@code [in, rank]}, B {@code [rank, out]}.
 *
 * @param rank columns of A and rows of B
 * @param alpha scale of the branches, times the rank
 * @param places of the branches, the same in every block
 */
public record Adapters(int rank, double alpha, List<AdapterPlace> places) {
    public Adapters {
        places = List.copyOf(places);
        if (rank < 1 || !(alpha > 0) || places.isEmpty()) {
            throw new IllegalArgumentException(
                    "adapters need a rank, a positive alpha and a place, got rank %d, alpha %s, places %s"
                            .formatted(rank, alpha, places));
        }
    }

    /** Returns the number by which what leaves a branch is multiplied. */
    public double scale() {
        return alpha / rank;
    }

    /** Returns the branches beside a linear layer such as {@code attn.c_attn}. */
    public List<AdapterPlace> beside(String linear) {
        return places.stream().filter(place -> place.linear().equals(linear)).toList();
    }
}
