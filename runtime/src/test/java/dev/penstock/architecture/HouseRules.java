package dev.penstock.architecture;

import static com.tngtech.archunit.base.DescribedPredicate.describe;
import static com.tngtech.archunit.base.DescribedPredicate.not;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideInAPackage;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.resideInAnyPackage;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.simpleName;
import static com.tngtech.archunit.core.domain.JavaModifier.STATIC;
import static com.tngtech.archunit.core.domain.JavaModifier.SYNTHETIC;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.classes;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.methods;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noFields;
import static com.tngtech.archunit.library.dependencies.SlicesRuleDefinition.slices;

import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaField;
import com.tngtech.archunit.core.domain.JavaMethod;
import com.tngtech.archunit.core.domain.JavaMethodCall;
import com.tngtech.archunit.core.domain.properties.HasParameterTypes;
import com.tngtech.archunit.lang.ArchCondition;
import com.tngtech.archunit.lang.ArchRule;
import com.tngtech.archunit.lang.ConditionEvents;
import com.tngtech.archunit.lang.SimpleConditionEvent;
import java.util.Random;
import java.util.SplittableRandom;

/**
 * What may know what, for classes below a root package. The root is an argument so that the same
 * rules can be shown to bite on code that breaks them.
 */
record HouseRules(String root) {
    private static final int MOST_TYPES = 40;
    private static final int MOST_PARAMETERS = 9;

    ArchRule packagesHaveNoCycles() {
        return slices().matching(root + ".(**)").should().beFreeOfCycles();
    }

    ArchRule theJudgeKnowsNoGenerator() {
        return noClasses()
                .that()
                .resideInAPackage(root + ".schedules.validate..")
                .should()
                .dependOnClassesThat()
                .resideInAnyPackage(root + ".schedules.generate..", root + ".schedules.lower..")
                .because("a judge that shares code with a generator shares its mistakes");
    }

    ArchRule generatorsKnowNoSimulator() {
        return noClasses()
                .that()
                .resideInAPackage(root + ".schedules.generate..")
                .should()
                .dependOnClassesThat()
                .resideInAPackage(root + ".schedules.simulate..");
    }

    ArchRule devicesKnowNoSchedulesAndNoActors() {
        return noClasses()
                .that()
                .resideInAPackage(root + ".cuda..")
                .should()
                .dependOnClassesThat()
                .resideInAnyPackage(root + ".schedules..", root + ".actors..", root + ".runtime..");
    }

    ArchRule actorsKnowNoApplication() {
        return noClasses()
                .that()
                .resideInAPackage(root + ".actors..")
                .should()
                .dependOnClassesThat()
                .resideInAPackage(root + ".runtime..");
    }

    ArchRule cpuAndGpuNeverSeeEachOther() {
        return slices().matching(root + ".cuda.(cpu|gpu)..").should().notDependOnEachOther();
    }

    ArchRule onlyTheGpuPackageSeesJcuda() {
        return only(".cuda.gpu..", "jcuda..");
    }

    ArchRule onlyTheAeronPackageSeesAeron() {
        return only(".actors.dataplane.aeron..", "io.aeron..");
    }

    ArchRule onlySerializationSeesKryo() {
        return only(".actors.serialization..", "com.esotericsoftware..");
    }

    ArchRule onlyTheCommandLineWritesToTheTerminal() {
        return noClasses()
                .that()
                .resideOutsideOfPackage(root + ".runtime.cli..")
                .should()
                .accessField(System.class, "out")
                .orShould()
                .accessField(System.class, "err");
    }

    ArchRule nothingStaticChanges() {
        return noFields()
                .that(describe("are static and not made by the compiler", HouseRules::isStatic))
                .should()
                .notBeFinal()
                .because("state belongs to whoever owns it");
    }

    ArchRule schedulesArePure() {
        return noClasses()
                .that()
                .resideInAPackage(root + ".schedules..")
                .should()
                .dependOnClassesThat()
                .resideInAnyPackage(
                        "java.io..",
                        "java.net..",
                        "java.nio..",
                        "java.time..",
                        "java.util.concurrent..",
                        "java.util.random..")
                .orShould()
                .dependOnClassesThat()
                .belongToAnyOf(Thread.class, Random.class, SplittableRandom.class)
                .orShould()
                .callMethod(System.class, "nanoTime")
                .orShould()
                .callMethod(System.class, "currentTimeMillis")
                .orShould()
                .callMethod(Math.class, "random")
                .because(
                        "an order is proved, simulated and run only if it depends on nothing else");
    }

    ArchRule actorsSeeOfSchedulesOnlyOps() {
        return noClasses()
                .that()
                .resideInAPackage(root + ".actors..")
                .should()
                .dependOnClassesThat(
                        resideInAPackage(root + ".schedules..")
                                .and(not(resideInAPackage(root + ".schedules.ir.."))));
    }

    ArchRule onlyTheFactoryOfDevicesSeesGpus() {
        return noClasses()
                .that()
                .resideOutsideOfPackages(
                        root + ".cuda.gpu..", root + ".cuda.nccl..", root + ".cuda")
                .should()
                .dependOnClassesThat()
                .resideInAnyPackage(root + ".cuda.gpu..", root + ".cuda.nccl..");
    }

    ArchRule portsSeeContractsOnly() {
        return noClasses()
                .that()
                .resideInAPackage(root + ".actors.spi..")
                .should()
                .dependOnClassesThat(
                        resideInAPackage(root + ".actors..")
                                .and(
                                        not(
                                                resideInAnyPackage(
                                                        root + ".actors.spi",
                                                        root + ".actors.collective",
                                                        root + ".actors.precision",
                                                        root + ".actors.dataplane"))));
    }

    ArchRule theModelIsSeenByItsFrontDoors() {
        return noClasses()
                .that()
                .resideOutsideOfPackage(root + ".runtime.model..")
                .should()
                .dependOnClassesThat(
                        resideInAPackage(root + ".runtime.model..")
                                .and(
                                        not(
                                                resideInAnyPackage(
                                                        root + ".runtime.model.shape",
                                                        root + ".runtime.model.family",
                                                        root + ".runtime.model.stage",
                                                        root + ".runtime.model.generation")))
                                .and(not(simpleName("ParameterSource"))));
    }

    ArchRule theCommandLineIsEnteredByItsMain() {
        return noClasses()
                .that()
                .resideOutsideOfPackage(root + ".runtime.cli..")
                .should()
                .dependOnClassesThat(
                        resideInAPackage(root + ".runtime.cli..")
                                .and(not(simpleName("Main")))
                                .and(not(simpleName("RunLog")))
                                .and(not(simpleName("Rehearsal"))));
    }

    ArchRule packagesHaveAtMostFortyTypes() {
        return classes()
                .that(describe("stand by themselves", HouseRules::standsAlone))
                .should(
                        new ArchCondition<>("share their package with at most 39 others") {
                            @Override
                            public void check(JavaClass type, ConditionEvents events) {
                                long types =
                                        type.getPackage().getClasses().stream()
                                                .filter(HouseRules::standsAlone)
                                                .count();
                                events.add(
                                        new SimpleConditionEvent(
                                                type,
                                                types <= MOST_TYPES,
                                                "%s is one of %d types of %s"
                                                        .formatted(
                                                                type.getSimpleName(),
                                                                types,
                                                                type.getPackageName())));
                            }
                        });
    }

    /** A record's components are its data, and a native function has the parameters it has. */
    ArchRule methodsHaveAtMostNineParameters() {
        return methods()
                .that(describe("are written by hand", HouseRules::isWritten))
                .and()
                .areDeclaredInClassesThat()
                .resideOutsideOfPackages(
                        root + ".cuda.gpu..",
                        root + ".cuda.cublas..",
                        root + ".cuda.nccl..",
                        root + ".cuda.onednn..")
                .should(
                        new ArchCondition<>("have at most nine parameters") {
                            @Override
                            public void check(JavaMethod method, ConditionEvents events) {
                                int parameters = method.getRawParameterTypes().size();
                                events.add(
                                        new SimpleConditionEvent(
                                                method,
                                                parameters <= MOST_PARAMETERS,
                                                "%s has %d parameters"
                                                        .formatted(
                                                                method.getFullName(), parameters)));
                            }
                        });
    }

    /**
     * The compiler inlines by how often it saw a call, which it knows for the calls of a loop it
     * compiles, and may not know for calls one deeper; a call that stays one makes an object of
     * every vector it passes.
     */
    ArchRule loopsCallVectorHelpersThemselves() {
        return methods()
                .that(describe("take vectors", HouseRules::takesVectors))
                .and()
                .areDeclaredInClassesThat()
                .resideInAPackage(root + ".cuda.cpu..")
                .should(
                        new ArchCondition<>("call no other method of ours that takes vectors") {
                            @Override
                            public void check(JavaMethod method, ConditionEvents events) {
                                for (JavaMethodCall call : method.getMethodCallsFromSelf()) {
                                    boolean ours = call.getTargetOwner().getName().startsWith(root);
                                    events.add(
                                            new SimpleConditionEvent(
                                                    call,
                                                    !ours || !takesVectors(call.getTarget()),
                                                    call.getDescription()));
                                }
                            }
                        });
    }

    private static boolean takesVectors(HasParameterTypes method) {
        return method.getRawParameterTypes().stream()
                .map(JavaClass::getName)
                .anyMatch(
                        name ->
                                name.startsWith("jdk.incubator.vector.")
                                        && name.endsWith("Vector"));
    }

    private static boolean standsAlone(JavaClass type) {
        return !type.isArray()
                && !type.getName().contains("$")
                && !type.getSimpleName().equals("package-info");
    }

    private static boolean isWritten(JavaMethod method) {
        return !method.getModifiers().contains(SYNTHETIC)
                && !method.getName().startsWith("lambda$");
    }

    private static boolean isStatic(JavaField field) {
        return field.getModifiers().contains(STATIC) && !field.getModifiers().contains(SYNTHETIC);
    }

    private ArchRule only(String ours, String theirs) {
        return noClasses()
                .that()
                .resideOutsideOfPackage(root + ours)
                .should()
                .dependOnClassesThat()
                .resideInAPackage(theirs);
    }
}
