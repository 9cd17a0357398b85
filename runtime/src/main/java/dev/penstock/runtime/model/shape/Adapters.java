package dev.penstock.runtime.model.shape;

import java.util.List;

/**
 * Low-rank branches beside linear layers (LoRA, Hu et al., arXiv 2106.09685): {@code y = x W +
 * alpha / rank (x A) B}, A {@code [in, rank]}, B {@code [rank, out]}.
 *
 * @param rank columns of A and rows of B
 * @param alpha scale of the branches, times the rank
 * @param dropout probability with which an element of what a branch reads is dropped in training
 * @param places of the branches, the same in every block
 */
public record Adapters(int rank, double alpha, double dropout, List<AdapterPlace> places) {
    public Adapters {
        places = List.copyOf(places);
        if (rank < 1 || !(alpha > 0) || !(dropout >= 0 && dropout < 1) || places.isEmpty()) {
            throw new IllegalArgumentException(
                    "adapters need a rank, a positive alpha, a dropout in [0, 1) and a place, got rank %d, alpha %s, dropout %s, places %s"
                            .formatted(rank, alpha, dropout, places));
        }
    }

    /** Adapters without dropout. */
    public Adapters(int rank, double alpha, List<AdapterPlace> places) {
        this(rank, alpha, 0, places);
    }

    /** Returns the same branches with another dropout. */
    public Adapters dropping(double other) {
        return new Adapters(rank, alpha, other, places);
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
