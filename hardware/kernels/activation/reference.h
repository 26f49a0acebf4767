// activation.h in double, for one element.
#ifndef PLINTH_HARDWARE_KERNELS_ACTIVATION_REFERENCE_H_
#define PLINTH_HARDWARE_KERNELS_ACTIVATION_REFERENCE_H_

namespace plinth::reference {

double Gelu(double x);
double SwiGlu(double gate, double up);

}  // namespace plinth::reference

#endif  // PLINTH_HARDWARE_KERNELS_ACTIVATION_REFERENCE_H_
