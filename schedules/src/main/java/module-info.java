/**
 * Pipeline schedules as data: generated, read from text, lowered to what ranks run, proved,
 * simulated and drawn. The JDK is all it needs.
 *
 * <p>The exported packages are public: within a major version nothing in them is removed or changes
 * its meaning.
 *
 * <ul>
 *   <li>{@link dev.penstock.schedules.ir}: schedules, their ops and their text
 *   <li>{@link dev.penstock.schedules.generate} and its {@code base}: the known families
 *   <li>{@link dev.penstock.schedules.generate.wired}: replicas that share their micro-batches
 *   <li>{@link dev.penstock.schedules.lower}: transfers, gathers and reductions
 *   <li>{@link dev.penstock.schedules.validate}: the judge
 *   <li>{@link dev.penstock.schedules.simulate}: times, bubbles and memory under given costs
 *   <li>{@link dev.penstock.schedules.render}: text grids, SVG and traces
 * </ul>
 */
module dev.penstock.schedules {
    requires static org.jspecify;

    exports dev.penstock.schedules.generate;
    exports dev.penstock.schedules.generate.base;
    exports dev.penstock.schedules.generate.wired;
    exports dev.penstock.schedules.ir;
    exports dev.penstock.schedules.lower;
    exports dev.penstock.schedules.render;
    exports dev.penstock.schedules.simulate;
    exports dev.penstock.schedules.validate;
}
