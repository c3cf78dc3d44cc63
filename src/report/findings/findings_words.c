/* What the page of findings says of each kind: what it is, why it matters, what to do. */
#include "report/findings/findings.h"

static const ki_finding_words words[KITH_N_FINDING_KINDS] = {
    [KITH_FINDING_UNREADABLE] = {"Files that cannot be read",
                                 "These files are named like pictures, and cannot be decoded.",
                                 "Training stops at a file that it cannot read, or goes on without it.",
                                 "Get them again from where they came from, or delete them.",
                                 "Certain: they were decoded.", KI_LOOK_LINE},
    [KITH_FINDING_LEAK] =
        {"The same picture in test and in training",
         "One picture lies in the test set and in training or validation: as it is, resized, saved again or "
         "mirrored.",
         "A network may know its test pictures by heart, so its scores are too good.",
         "Keep one of them. The list that kith writes keeps the one in the test set.", NULL, KI_LOOK_GROUP},
    [KITH_FINDING_CONFLICT] =
        {"The same picture in several classes",
         "One picture has several labels, and at most one can be right.",
         "Training pulls the picture both ways, and a test counts one of them as wrong.",
         "Decide which class is right and delete the others. Until then the list leaves "
         "all of them out.",
         NULL, KI_LOOK_GROUP},
    [KITH_FINDING_MISLABELLED] = {"Labels that look wrong",
                                  "Another class explains these pictures better than the class they are in. "
                                  "On the left the picture, on "
                                  "the right the picture of that class that is most like it.",
                                  "Wrong labels cost accuracy, and wrong labels in a test set hide it.",
                                  "Look at each pair. Move the picture if the label is wrong. If the two "
                                  "classes cannot be told apart, "
                                  "consider making one of them. The list leaves out only those that are "
                                  "surest, and none of the test set.",
                                  NULL, KI_LOOK_TURNED},
    [KITH_FINDING_DUPLICATE] =
        {"The same picture twice in a class",
         "One picture lies in a class several times: as it is, resized, saved again or "
         "mirrored.",
         "It counts several times in training, and in a test it finds itself.",
         "Keep the largest. The list keeps the first.", NULL, KI_LOOK_GROUP},
    [KITH_FINDING_NEAR_LEAK] =
        {"Almost the same picture in test and in training",
         "These pictures are not the same, but hardly differ: two of a burst, two frames of a film.",
         "Scores are too good if the test shows the same moment again.",
         "Keep what was taken together on one side: name it in the column `group` of a manifest.", NULL,
         KI_LOOK_GROUP},
    [KITH_FINDING_MISSING] = {"Listed files that do not exist", "The list names files that are not there.",
                              "They cannot be trained on.", "Correct the list, or put the files back.",
                              "Certain.", KI_LOOK_LINE},
    [KITH_FINDING_NOT_READ] =
        {"Files that are not read",
         "These files lie among the pictures, and are of formats that kith does not read.",
         "If they are pictures, they are missing from the set.",
         "Convert them to JPEG or PNG if they belong to it.", "Certain.", KI_LOOK_LINE},
    [KITH_FINDING_SINGLE] =
        {"Classes with one picture", "These classes have one picture each.",
         "Nothing can be learnt of what such a class's pictures have in common, and a test "
         "cannot find its partner.",
         "Add pictures, or leave the class out.", "Certain.", KI_LOOK_EACH},
    [KITH_FINDING_EMPTY] = {"Classes without pictures", "These classes have no picture.",
                            "They may be folders that were emptied, or names that were misspelt.",
                            "Delete them, or add pictures.", "Certain.", KI_LOOK_LINE},
    [KITH_FINDING_UNEVEN] = {"Classes with far more pictures than others",
                             "These classes have many times the pictures of the class in the middle.",
                             "A network learns most of what it sees most.",
                             "Add pictures to the others, or train with `batch: {sampler: weighted}`.",
                             "Certain.", KI_LOOK_LINE},
    [KITH_FINDING_TINY] = {"Small pictures", "These pictures have few pixels.",
                           "Enlarged to what the network sees they are blurred, and details are missing.",
                           "Replace them by larger ones if there are any.", "Certain.", KI_LOOK_EACH},
    [KITH_FINDING_EXTREME] = {"Very long or very wide pictures",
                              "One side of these pictures is many times the other.",
                              "What the network sees of them is squashed or cut.", "Cut out what matters.",
                              "Certain.", KI_LOOK_EACH},
    [KITH_FINDING_NEAR] =
        {"Almost the same picture",
         "These pictures are not the same, but hardly differ: two of a burst, two frames of a "
         "film.",
         "They add little, and count twice.", "Keep one of each if there are many.", NULL, KI_LOOK_GROUP},
    [KITH_FINDING_ODD] = {"Odd ones out",
                          "These pictures are unlike every other of their class, and unlike everything else "
                          "in the set. On the "
                          "right the one of their class that is most like them.",
                          "They may not belong to the set at all: a logo, a map, a screenshot, another "
                          "subject. Training on them "
                          "teaches nothing, or something wrong.",
                          "Delete what does not belong. Keep what is only rare, and add more like it.", NULL,
                          KI_LOOK_OWN},
    [KITH_FINDING_BLURRED] =
        {"Blurred pictures", "These pictures have hardly any fine detail: out of focus, moved, or enlarged.",
         "Details that tell classes apart may be lost.",
         "Take them again, or delete those that people could not tell either. If the pictures "
         "you will search with are blurred as well, keep them.",
         NULL, KI_LOOK_EACH},
    [KITH_FINDING_SHORTCUT] =
        {"The surroundings give the classes away",
         "With the middle of the pictures painted over, the class can still be told by what is left.",
         "A network may learn the table, the light or the background instead of the thing, and fail where "
         "these are different.",
         "Look at the borders below. If the things reach into them, all is well. If not, take pictures of "
         "each class "
         "in several places, or cut the things out (`box: true`), and test with pictures from elsewhere.",
         NULL, KI_LOOK_BORDER},
};

const ki_finding_words *ki_finding_words_of(kith_finding_kind kind) { return &words[kind]; }
