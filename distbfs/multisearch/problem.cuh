/* A problem without state.  cuda_program.py replaces this file by its text for a
 * problem: the state, and the functions as the user wrote them. */
#define HAS_INIT 0
#define HAS_PRIOR 0
#define HAS_VISIT_VERTEX 0
#define HAS_POST 0
#define HAS_END 0
#define HAS_FINALIZE 0
struct Fields {
    u64 unused;
};
struct Search : Base {
    __device__ __forceinline__ Search(const Fields &, u32, u64, u64, u32) {}
};
struct Whole : WholeBase {
    __device__ __forceinline__ Whole(const Fields &) {}
};
