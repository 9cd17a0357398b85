package dev.penstock.schedules.ir;

import java.util.List;

/**
 * An order of work for every rank, as data. Generators emit compute ops only; passes of {@code
 * lower} add transfers and reductions; judge, simulator and runtime read the same lowered schedule.
 *
 * @param name what a reader calls it, such as {@code 1f1b}; no influence on meaning
 * @param programs entry r is the program of rank r
 */
public record Schedule(
        String name, PipelineShape shape, Placement placement, List<RankProgram> programs) {
    public Schedule {
        programs = List.copyOf(programs);
    }

    public RankProgram program(int rank) {
        return programs.get(rank);
    }
}
